package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// makeHistory writes a file in which alice paused and ops deleted.
func makeHistory(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "relayers.db")
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := manager.Create(t.Context(), relayer.CreateRequest{ID: id, Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	alice := relayer.WithActor(t.Context(), relayer.Actor{ID: "alice"})
	if _, err := manager.Patch(alice, "a", relayer.Patch{"paused": true, "name": "m"}, relayer.Reason("incident 42")); err != nil {
		t.Fatal(err)
	}
	ops := relayer.WithActor(t.Context(), relayer.Actor{ID: "ops\x1b[31m"})
	if err := manager.Delete(ops, "b"); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHistory_Table(t *testing.T) {
	path := makeHistory(t)
	output := runCommand(t, "history", "a", "--db", path)
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "TIME") ||
		strings.Join(strings.Fields(lines[1])[2:], " ") != "3 a alice update name paused=true incident 42" ||
		strings.Join(strings.Fields(lines[2])[2:], " ") != "1 a - create -" {
		t.Errorf("printed\n%s", output)
	}
	for name, c := range map[string]struct {
		args []string
		want []string // revisions
	}{
		"all":        {nil, []string{"4", "3", "2", "1"}},
		"by actor":   {[]string{"--actor", "alice"}, []string{"3"}},
		"by action":  {[]string{"--action", "create"}, []string{"2", "1"}},
		"by field":   {[]string{"--changed", "paused"}, []string{"3"}},
		"since":      {[]string{"--since", "1h"}, []string{"4", "3", "2", "1"}},
		"since soon": {[]string{"--since", time.Now().Add(time.Hour).Format(time.RFC3339)}, nil},
		"limited":    {[]string{"--limit", "2"}, []string{"4", "3"}},
	} {
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(runCommand(t, append([]string{"history", "--db", path}, c.args...)...)), "\n") {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] != "TIME" {
				got = append(got, fields[2])
			}
			if strings.Contains(line, "\x1b") {
				t.Errorf("%s: the text of a caller controls the terminal: %q", name, line)
			}
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: revisions %q, want %q", name, got, c.want)
		}
	}
}

func TestHistory_JSON(t *testing.T) {
	output := runCommand(t, "history", "b", "--json", "--db", makeHistory(t))
	decoder := json.NewDecoder(strings.NewReader(output))
	for i, want := range []string{"delete", "create"} {
		var entry struct {
			Revision uint64
			ID       string
			Action   string
			Relayer  *struct{ Name string }
		}
		if err := decoder.Decode(&entry); err != nil || entry.ID != "b" || entry.Action != want || (entry.Relayer == nil) != (want == "delete") {
			t.Errorf("entry %d is %+v, error %v, want %s", i, entry, err, want)
		}
	}
}

func TestHistory_Since(t *testing.T) {
	now := time.Date(2026, 5, 6, 15, 30, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"":                     {},
		"14:00":                time.Date(2026, 5, 6, 14, 0, 0, 0, time.Local),
		"2h":                   now.Add(-2 * time.Hour),
		"2026-05-01":           time.Date(2026, 5, 1, 0, 0, 0, 0, time.Local),
		"2026-05-01 10:00:00":  time.Date(2026, 5, 1, 10, 0, 0, 0, time.Local),
		"2026-05-01T10:00:00Z": time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, error %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-2h", "25:00", "2026-13-01"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
