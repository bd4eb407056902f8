package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
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
	store := mustGet(bolt.Open(t.Context(), path))(t)
	defer store.Close()
	manager := mustGet(relayer.New(store))(t)
	for _, id := range []string{"a", "b"} {
		mustGet(manager.Create(t.Context(), relayer.CreateRequest{ID: id, Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}))(t)
	}
	alice := relayer.WithActor(t.Context(), relayer.Actor{ID: "alice"})
	mustGet(manager.Patch(alice, "a", []byte(`{"paused":true,"name":"m"}`), relayer.Reason("incident 42")))(t)
	must(t, manager.Delete(relayer.WithActor(t.Context(), relayer.Actor{ID: "ops\x1b[31m"}), "b"))
	mustGet(manager.Create(t.Context(), relayer.CreateRequest{ID: "c", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s", Paused: true}))(t)
	return path
}

// The history of a file, of a server and of a PostgreSQL database is the same.
func TestHistory(t *testing.T) {
	t.Parallel()
	path, database := makeHistory(t), newDatabase(t)
	expect(t, 0, "copy", "--from", path, "--to", database)
	served := filepath.Join(t.TempDir(), "served.db")
	expect(t, 0, "backup", "--db", path, "--to", served)
	server := start(t, token, "--db", served)
	for _, target := range [][]string{{"--db", path}, {"--db", database}, {"--server", server.url}} {
		expectHistory(t, append([]string{"history"}, target...))
	}
	server.stop()
}

func expectHistory(t *testing.T, command []string) {
	t.Helper()
	for args, want := range map[string]string{ // revisions, newest first
		"":                             "5 4 3 2 1",
		"--actor alice":                "3",
		"--action create":              "5 2 1",
		"--changed paused":             "5 3",
		"--since 1h":                   "5 4 3 2 1",
		"--since 2999-01-01T00:00:00Z": "",
		"--limit 2":                    "5 4",
		"--limit 2 --action create":    "5 2",
		"a":                            "3 1",
	} {
		output := expect(t, 0, append(command[:len(command):len(command)], strings.Fields(args)...)...).stdout
		var got []string
		for line := range strings.Lines(output) {
			if fields := strings.Fields(line); fields[0] != "TIME" {
				got = append(got, fields[2])
			}
		}
		if strings.Join(got, " ") != want || strings.Contains(output, "\x1b") {
			t.Errorf("%s: revisions %q, want %q: %q", args, got, want, output)
		}
	}
	lines := strings.Split(expect(t, 0, append(command[:len(command):len(command)], "--changed", "paused")...).stdout, "\n")
	if strings.Join(strings.Fields(lines[1])[2:], " ") != "5 c - create paused=true -" || strings.Join(strings.Fields(lines[2])[2:], " ") != "3 a alice update name paused=true incident 42" {
		t.Errorf("printed %q", lines)
	}
	decoder := json.NewDecoder(strings.NewReader(expect(t, 0, append(command[:len(command):len(command)], "--json")...).stdout))
	for _, want := range []string{"5 c create [] true", "4 b delete [] false", "3 a update [name paused] true"} { // as in the API
		var entry struct {
			Revision   uint64
			ID, Action string
			Changed    []string
			Relayer    *struct{ Name string }
		}
		err := decoder.Decode(&entry)
		if got := fmt.Sprint(entry.Revision, " ", entry.ID, " ", entry.Action, " ", entry.Changed, " ", entry.Relayer != nil); err != nil || got != want {
			t.Errorf("entry %q, error %v, want %q", got, err, want)
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

// A server retains what its flag says, and a command deletes nothing.
func TestServe_HistoryRetention(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	opened := mustGet(database{"--db", path}.forCommand(t.Context()))(t)
	changes := make([]relayer.RecordChange, historyChanges+100)
	for i := range changes {
		changes[i] = relayer.RecordChange{Kind: relayer.ChangeCreated, Record: relayer.Record{
			ID: "r-0", Sequence: 1, Revision: uint64(i + 1), Document: []byte(`{"network_type":"evm"}`),
		}}
	}
	must(t, opened.(*bolt.Store).ImportHistory(t.Context(), changes))
	must(t, opened.Close())
	expect(t, 0, "compact", "--db", path)
	retained := func() int { // without the header
		return strings.Count(runCommand(t, "history", "r-0", "--db", path, "--limit", "2000"), "\n") - 1
	}
	if got := retained(); got != len(changes) {
		t.Errorf("%d changes, want %d", got, len(changes))
	}
	server := start(t, token, "--db", path, "--history", "876000h")
	server.expect("POST", collection, token, definitionOf("r-0"), http.StatusCreated)
	const pruneStep = 64 // changes that are too many are deleted when there are so many of them
	for i := range pruneStep {
		server.expect("PATCH", collection+"/r-0", token, fmt.Sprintf(`{"name":"n-%d"}`, i), http.StatusOK)
	}
	server.stop()
	if got := retained(); got < historyChanges || got > historyChanges+pruneStep {
		t.Errorf("a server retains %d changes, want about %d", got, historyChanges)
	}
	server = start(t, token, "--db", path, "--history", "0")
	server.expect("GET", collection+":history", token, "", http.StatusNotFound)
	server.stop()
}

// A damaged change of the history is no damage of a relayer. Commands report it and leave it out.
func TestCheck_DamagedHistory(t *testing.T) {
	t.Parallel()
	path := makeHistory(t)
	damaged := bytes.ReplaceAll(fileContent(t, path), []byte(`"actor":"ops`), []byte(`"actor":"oqs`)) // only the delete has it
	must(t, os.WriteFile(path, damaged, 0o600))
	for _, args := range [][]string{{"check", "--db", path}, {"history", "--db", path}, {"backup", "--db", path, "--to", path + ".copy"}} {
		output, err := program(token, args...).CombinedOutput()
		text := string(output)
		if err != nil || !strings.Contains(text, `msg="a change of the history is damaged: it is left out" id=b`) || strings.Contains(text, "oqs") {
			t.Errorf("%q: error %v, output %s", args, err, text)
		}
	}
}
