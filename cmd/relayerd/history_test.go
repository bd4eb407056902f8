package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
		done := expect(t, 0, append(command[:len(command):len(command)], strings.Fields(args)...)...)
		output := done.stdout
		if hasNote := strings.Contains(done.stderr, "no such changes"); hasNote != (want == "") {
			t.Errorf("%s: printed %q", args, done.stderr)
		}
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

// auditLine is a line in JSON about a write, a read of full RPC URLs, or refused requests.
type auditLine struct {
	Time        time.Time `json:"time"`
	Message     string    `json:"msg"`
	Actor       string    `json:"actor"`
	Principal   string    `json:"principal"`
	Address     string    `json:"address"`
	RequestID   string    `json:"request_id"`
	Action      string    `json:"action"`
	RelayerID   string    `json:"relayer_id"`
	Outcome     string    `json:"outcome"`
	OldRevision uint64    `json:"old_revision"`
	Revision    *uint64   `json:"revision"`
	Changed     []string  `json:"changed"`
	Paused      *bool     `json:"paused"`
	Reason      string    `json:"reason"`
}

// String returns "" for lines about something else.
func (l auditLine) String() string {
	switch l.Message {
	case "full RPC URLs requested":
		return fmt.Sprintf("%s reveal %s", l.Principal, l.RelayerID)
	case "request forbidden":
		return fmt.Sprintf("%s %s %s forbidden", l.Principal, l.Action, l.RelayerID)
	case "audit":
	default:
		return ""
	}
	text := fmt.Sprintf("%s %s %s %s %d>", l.Actor, l.Action, l.RelayerID, l.Outcome, l.OldRevision)
	if l.Revision != nil {
		text += fmt.Sprint(*l.Revision)
	}
	if len(l.Changed) > 0 {
		text += " " + strings.Join(l.Changed, ",")
	}
	if l.Paused != nil {
		text += fmt.Sprint(" paused=", *l.Paused)
	}
	if l.Reason != "" {
		text += " because of " + l.Reason
	}
	return text
}

// One line for each write, each read of full RPC URLs and each refusal says who, what, and when, without any secret.
func TestAudit(t *testing.T) {
	t.Parallel()
	const engine = password + "-engine"
	tokens := newTokens(t, "ops "+oldToken+" write", "payments "+newToken+" write label.team=payments", "auditor "+readerToken+" read", "engine "+engine+" engine")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens, "--log-format", "json")
	one := collection + "/a"
	server.expect("POST", collection, oldToken, sealedURL("a"), http.StatusCreated)
	server.expect("POST", collection+"?dry_run=true", oldToken, sealedURL("b"), http.StatusOK)
	server.expect("POST", collection, oldToken, sealedURL("a"), http.StatusConflict)
	server.expect("PATCH", one, oldToken, `{"paused":true}`, http.StatusOK)
	server.expect("PATCH", one, oldToken, `{"name":"m","custom_rpc_urls":[{"url":"https://rpc.example/`+urlSecret+`2"}]}`, http.StatusOK)
	server.expect("PATCH", one, newToken, `{"paused":false}`, http.StatusNotFound)
	server.expect("PATCH", one, readerToken, `{"paused":false}`, http.StatusForbidden)
	server.expect("DELETE", collection+"/"+urlSecret+".", readerToken, "", http.StatusForbidden)
	server.expect("DELETE", collection+"/"+urlSecret+".", oldToken, "", http.StatusNotFound)
	server.expect("GET", one, readerToken, "", http.StatusOK)
	server.expect("GET", one+"?rpc_urls=full", engine, "", http.StatusOK)
	server.expect("GET", one+"?rpc_urls=full", oldToken, "", http.StatusForbidden)
	server.expect("PUT", one+"/disabled_reason", engine, `{"type":"BalanceCheckFailed","details":"`+fullURL+`"}`, http.StatusOK)
	server.reason = "incident 42"
	server.expect("PATCH", one, oldToken, `{"paused":false,"name":"n"}`, http.StatusOK)
	server.expect("PATCH", one, oldToken, `{"paused":false}`, http.StatusOK)
	for range 2 {
		server.expect("PATCH", one, oldToken, `{"name":""}`, http.StatusBadRequest)
	}
	server.expect("DELETE", one, oldToken, "", http.StatusOK)
	server.stop()

	log := server.output.String()
	expectNoSecret(t, log)
	var got []string
	for text := range strings.Lines(log) {
		var line auditLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line.String() == "" {
			continue
		}
		got = append(got, line.String())
		if line.Address != "127.0.0.1" || line.RequestID == "" || time.Since(line.Time) > time.Hour {
			t.Errorf("%s: time %v, address %q, request %q", line, line.Time, line.Address, line.RequestID)
		}
	}
	if want := []string{
		"ops create a ok 0>1",
		"ops create a exists 0>0",
		"ops pause a ok 1>2 paused paused=true",
		"ops update a ok 2>3 custom_rpc_urls,name",
		"payments resume a not_found 0>0",
		"auditor update a forbidden",
		"auditor delete  forbidden",
		"ops delete  not_found 0>0",
		"engine reveal a",
		"ops reveal a forbidden",
		"engine disable a ok 3>4 disabled_reason.details,disabled_reason.type,system_disabled",
		"ops update a ok 4>5 name,paused paused=false because of incident 42",
		"ops resume a ok 5>5 because of incident 42",
		"ops update a invalid 5>5 because of incident 42",
		"ops update a invalid 5>5 because of incident 42",
		"ops delete a ok 5> because of incident 42",
	}; !slices.Equal(got, want) {
		t.Errorf("the audit is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The end of the process that reads the log neither fails a write nor ends the server. So does SIGHUP
// without a file to reload.
func TestAudit_ClosedLog(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	must(t, err)
	defer reader.Close()
	p := &process{t: t, command: serverCommand(token, "--db", "memory")}
	p.command.Stderr = writer
	must(t, p.command.Start())
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	_ = writer.Close()
	for lines := bufio.NewScanner(reader); p.url == "" && lines.Scan(); {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			p.url = "http://" + found[1]
		}
	}
	p.expect("POST", collection, token, definition, http.StatusCreated)
	must(t, reader.Close())
	p.signal(syscall.SIGHUP)
	for i := range 10 {
		p.expect("PATCH", collection+"/r-1", token, fmt.Sprintf(`{"name":"n%d"}`, i), http.StatusOK)
	}
	p.signal(syscall.SIGTERM)
	must(t, p.command.Wait())
}

func TestTrustedProxies_ClientAddress(t *testing.T) {
	t.Parallel()
	trusted := mustGet(parseProxies("10.0.0.0/8, 192.0.2.7,::1,2001:db8:1::/48,::ffff:192.0.2.9"))(t)
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"203.0.113.5:1000", nil, "203.0.113.5"},
		{"203.0.113.5:1000", []string{"198.51.100.1"}, "203.0.113.5"},                    // not a proxy
		{"10.1.2.3:1000", nil, "10.1.2.3"},                                               // a proxy itself
		{"10.1.2.3:1000", []string{"198.51.100.1"}, "198.51.100.1"},                      // one proxy
		{"10.1.2.3:1000", []string{"6.6.6.6, 198.51.100.1"}, "198.51.100.1"},             // a forged address
		{"10.1.2.3:1000", []string{"6.6.6.6", "198.51.100.1"}, "198.51.100.1"},           // in a separate header
		{"10.1.2.3:1000", []string{"198.51.100.1, 10.9.9.9 ,192.0.2.7"}, "198.51.100.1"}, // three proxies
		{"10.1.2.3:1000", []string{"10.9.9.9"}, "10.9.9.9"},                              // only proxies
		{"10.1.2.3:1000", []string{"198.51.100.1, unknown"}, "10.1.2.3"},                 // unreadable
		{"10.1.2.3:1000", []string{""}, "10.1.2.3"},                                      // empty
		{"10.1.2.3:1000", []string{"198.51.100.1:54321"}, "198.51.100.1"},                // with a port
		{"10.1.2.3:1000", []string{"[2001:db8:5:6::7]:54321"}, "2001:db8:5:6::7"},
		{"10.1.2.3:1000", []string{"2001:db8:5:6::7"}, "2001:db8:5:6::7"},
		{"192.0.2.8:1000", []string{"198.51.100.1"}, "192.0.2.8"},                       // next to a proxy
		{"192.0.2.9:1000", []string{"198.51.100.1"}, "198.51.100.1"},                    // a proxy in IPv6 form
		{"[::ffff:10.1.2.3]:1000", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},     // IPv4 in IPv6 form
		{"[2001:db8:1:2::3]:1000", []string{"2001:db8:5:6::b%eth0"}, "2001:db8:5:6::b"}, // with a zone
		{"@", []string{"198.51.100.1"}, "@"},                                            // a Unix socket
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{"X-Forwarded-For": c.forwarded}}
		if got := trusted.clientAddress(r); got != c.want {
			t.Errorf("%s with %q: client %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}
