package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	if _, err := manager.Patch(alice, "a", []byte(`{"paused":true,"name":"m"}`), relayer.Reason("incident 42")); err != nil {
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
		strings.Join(strings.Fields(lines[2])[2:], " ") != "1 a - create - -" {
		t.Errorf("printed\n%s", output)
	}
	for name, flags := range historyTargets(t, path) {
		t.Run(name, func(t *testing.T) { expectHistory(t, flags) })
	}
}

// historyTargets returns the flags for the history of a file: of the file, of a server, and of a
// PostgreSQL database.
func historyTargets(t *testing.T, path string) map[string]func(t *testing.T) []string {
	t.Helper()
	return map[string]func(t *testing.T) []string{
		"file": func(*testing.T) []string { return []string{"--db", path} },
		"server": func(t *testing.T) []string {
			served := filepath.Join(t.TempDir(), "served.db")
			runCommand(t, "backup", "--db", path, "--to", served)
			server := start(t, token, "--db", served)
			t.Cleanup(server.stop)
			return []string{"--server", server.url}
		},
		"postgres": func(t *testing.T) []string {
			database := location(t, startPostgres(t), "postgres")
			expect(t, 0, "copy", "--from", path, "--to", database)
			return []string{"--db", database}
		},
	}
}

// expectHistory checks what each filter prints of the history of makeHistory.
func expectHistory(t *testing.T, target func(t *testing.T) []string) {
	t.Helper()
	flags := target(t)
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
		for line := range strings.Lines(expect(t, 0, on(flags, "history", c.args...)...).stdout) {
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

// The search for who paused a relayer finds the create of one that was paused from the start.
func TestHistory_CreatedPaused(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", filepath.Join(t.TempDir(), "relayers.db"))
	server.expectStatus("POST", collection, token, strings.Replace(definition, `"paused":false`, `"paused":true`, 1), http.StatusCreated)
	server.expectStatus("POST", collection, token, strings.Replace(definition, "r-1", "r-2", 1), http.StatusCreated)
	output := expect(t, 0, "history", "--changed", "paused", "--server", server.url).stdout
	if strings.Count(output, "\n") != 2 || !strings.Contains(output, " r-1 ") || !strings.Contains(output, "create  paused=true") {
		t.Errorf("printed\n%s", output)
	}
	server.stop()
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
		"2h ago":               now.Add(-2 * time.Hour),
		"2026-05-01":           time.Date(2026, 5, 1, 0, 0, 0, 0, time.Local),
		"2026-05-01 10:00:00":  time.Date(2026, 5, 1, 10, 0, 0, 0, time.Local),
		"2026-05-01T10:00:00Z": time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, error %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-2h", "-2h ago", "ago", "14:00 ago", "25:00", "2026-13-01"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// A change of an instance whose clock is behind, or of an unknown time, does not end a search.
func TestHistory_Clocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	since := time.Now().Add(-time.Hour).Truncate(time.Second)
	for id, changed := range []time.Time{since, since.Add(-59 * time.Second), {}, since} {
		rec := relayer.Record{ID: fmt.Sprint("r-", id), Document: []byte(`{"network_type":"evm"}`)}
		if !changed.IsZero() {
			rec.Note = fmt.Appendf(nil, "%d\tcreate", changed.UnixMilli())
		}
		if _, err := store.Create(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	output := runCommand(t, "history", "--db", path, "--since", since.Format(time.RFC3339))
	if strings.Count(output, "\n") != 3 || !strings.Contains(output, " r-0 ") || !strings.Contains(output, " r-3 ") {
		t.Errorf("printed\n%s", output)
	}
}

func TestServe_HistoryRetention(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", path, "--rate", "0")
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	const changes = 1200
	for i := range changes {
		server.expectStatus("PATCH", collection+"/r-1", token, fmt.Sprintf(`{"name":"n-%d"}`, i), http.StatusOK)
	}
	server.stop()
	const pruneStep = 64 // changes that are too many are deleted when there are so many of them
	if retained := strings.Count(runCommand(t, "history", "r-1", "--db", path, "--limit", "2000"), "\n"); retained < 1000 || retained > 1000+pruneStep {
		t.Errorf("%d changes are retained, want about 1000", retained)
	}
	server = start(t, token, "--db", path, "--history", "0")
	server.expectStatus("GET", collection+":history", token, "", http.StatusNotFound)
	server.stop()
	expectFailure(t, "--history must be 0 or at least 1s", "serve", "--db", path, "--history", "-1h")
	expectFailure(t, "--history must be 0 or at least 1s", "serve", "--db", path, "--history", "1ns")
	expectFailure(t, "--history must not be set for memory: it retains 1,024 changes", "serve", "--db", "memory", "--history", "0")
}

// A flag of a server sets its part of the retention of a database in PostgreSQL for all servers.
// A server without it and a command change nothing.
func TestServe_HistoryRetentionOfDatabase(t *testing.T) {
	t.Parallel()
	database := createDatabase(t, startPostgres(t), "registry")
	const retention = `SELECT concat_ws(' ', history_changes, history_age / 3600000000) FROM relayer.pruning`
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "1000 2160"},
		{[]string{"--history", "8760h"}, "1000 8760"},
		{nil, "1000 8760"},
		{[]string{"--history", "1h"}, "1000 1"},
		{[]string{"--history", "0"}, "1000 0"},
	} {
		start(t, token, append([]string{"--db", database}, c.flags...)...).stop()
		if got := query[string](t, database, retention); got != c.want {
			t.Errorf("serve %v: retention %s, want %s", c.flags, got, c.want)
		}
		expect(t, 0, "check", "--db", database)
		if got := query[string](t, database, retention); got != c.want {
			t.Errorf("check after serve %v: retention %s, want %s", c.flags, got, c.want)
		}
	}
	server := start(t, token, "--db", database)
	server.expectStatus("GET", collection+":history", token, "", http.StatusNotFound)
	server.stop()
}

// A command deletes nothing that a server with other flags retains.
func TestCommand_KeepsHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	opened, err := database{"--db", path}.forCommand(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := opened.(*bolt.Store)
	defer file.Close()
	changes := make([]relayer.RecordChange, historyChanges+100)
	for i := range changes {
		changes[i] = relayer.RecordChange{Kind: relayer.ChangeCreated, Record: relayer.Record{
			ID: "r-0", Sequence: 1, Revision: uint64(i + 1), Document: []byte(`{"network_type":"evm"}`),
		}}
	}
	if err := errors.Join(file.ImportHistory(t.Context(), changes), file.Close()); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, "compact", "--db", path)
	if retained := strings.Count(runCommand(t, "history", "r-0", "--db", path, "--limit", "2000"), "\n"); retained != 1+len(changes) { // with its header
		t.Errorf("%d lines, want a header and %d changes", retained, len(changes))
	}
}
