package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// machine runs relayerd for an operator: as a process of this system, or as one of the image.
type machine struct {
	t       *testing.T
	program func(apiKey string, args ...string) *exec.Cmd
	data    string // the directory of all files, as relayerd sees it
	outside string // the same directory, as the test sees it
	own     func(path string) error
	printed *output // of all commands
}

// run runs a command, and returns what it prints.
func (m machine) run(apiKey string, args ...string) string {
	m.t.Helper()
	text, err := m.program(apiKey, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%q: %v: %s", args, err, text)
	}
	_, _ = m.printed.Write(text)
	return string(text)
}

// start starts a server whose flags are environment variables.
func (m machine) start(database string, environment ...string) *process {
	m.t.Helper()
	server := &process{t: m.t, command: m.program("", "serve"), output: new(output)}
	server.command.Env = append(append(server.command.Env, environment...), "RELAYERD_ADDR=127.0.0.1:0", "RELAYERD_DRAIN_DELAY=0",
		"RELAYERD_DB="+database, "RELAYERD_TOKENS_FILE="+m.data+"/tokens", "RELAYERD_KEYS="+m.data+"/relayer.keys")
	server.run()
	return server
}

// stop stops a server, and keeps its log.
func (m machine) stop(server *process) {
	m.t.Helper()
	server.stop()
	_, _ = m.printed.Write([]byte(server.output.String()))
}

// replace replaces a file as Kubernetes and editors do.
func (m machine) replace(name string, lines ...string) {
	m.t.Helper()
	path := filepath.Join(m.outside, name)
	writeTokens(m.t, path+".next", lines...)
	must(m.t, m.own(path+".next"))
	must(m.t, os.Rename(path+".next", path))
}

// day is what an operator does in a day. It ends with a copy in PostgreSQL, if there is one.
func (m machine) day(postgres string) {
	t := m.t
	const auditor, saver = readerToken, password + "-saver"
	alice, staff := oldToken, []string{"auditor " + auditor + " read", "saver " + saver + " backup", "oncall " + password + "-oncall write+engine"}
	database, backup, keys := m.data+"/relayers.db", m.data+"/backup.db", m.data+"/relayer.keys"
	m.run("", "keys", "add", "--keys", keys, "--id", "k1")
	m.replace("tokens", append(staff, "alice "+alice+" write")...)

	server := m.start(database)
	m.run("", "healthcheck", "--addr", server.address())
	server.expect("POST", collection, alice, sealedURL("treasury"), http.StatusCreated)
	server.expect("DELETE", collection+"/treasury", auditor, "", http.StatusForbidden)

	// Rotate the token of alice, and the key.
	alice = newToken
	m.replace("tokens", append(staff, "alice "+alice+" write")...)
	server.output.awaitText(t, `"file reloaded" flag=--tokens-file`, 1)
	server.expect("GET", collection, oldToken, "", http.StatusUnauthorized)
	m.run("", "keys", "add", "--keys", keys, "--id", "k2")
	server.output.awaitText(t, `"all RPC URLs are under the primary key" stored=1 primary=k2`, 1)
	m.run(saver, "keys", "remove", "--keys", keys, "--id", "k1", "--server", server.url)
	server.output.awaitText(t, `"file reloaded" flag=--keys`, 2)

	// An incident: pause all, and find out who paused what.
	paused := m.run(alice, "pause", "--server", server.url, "--all", "--reason", "incident 42")
	if !strings.HasPrefix(paused, "paused 1 relayer, 0 unchanged, request ") {
		t.Errorf("pause prints %q", paused)
	}
	who := m.run(auditor, "history", "treasury", "--server", server.url, "--changed", "paused", "--since", "1h ago")
	if !regexp.MustCompile(`(?m)^\S+ \S+ +\d+ +treasury +alice +pause +paused=true +incident 42\s*$`).MatchString(who) {
		t.Errorf("the history is %s", who)
	}

	// Configuration as code leaves it paused.
	m.replace("relayers.json", m.run(auditor, "export", "--server", server.url))
	m.replace("relayers.json", strings.Replace(string(fileContent(t, filepath.Join(m.outside, "relayers.json"))), `"name": "n"`, `"name": "Treasury"`, 1))
	file := m.data + "/relayers.json"
	if text := m.run(alice, "apply", "--yes", "-f", file, "--server", server.url); !strings.HasSuffix(text, "\n0 created, 1 updated, 0 deleted\n") {
		t.Errorf("apply prints %s", text)
	}
	if text := m.run(auditor, "plan", "-f", file, "--server", server.url); !strings.HasSuffix(text, "0 to create, 0 to update, 0 to delete, 1 unchanged\n") {
		t.Errorf("plan prints %s", text)
	}

	// Back up, resume, and restart.
	m.run(saver, "backup", "--server", server.url, "--to", backup)
	m.run(alice, "resume", "--server", server.url, "--paused-by", strings.TrimSpace(paused[strings.LastIndex(paused, " "):]))
	m.stop(server)
	server = m.start(database)
	read := func(server *process) string {
		t.Helper()
		request, _ := http.NewRequest("GET", server.url+collection+"/treasury?rpc_urls=full", nil)
		request.Header.Set("Authorization", "Bearer "+password+"-oncall")
		response := mustGet(http.DefaultClient.Do(request))(t)
		defer response.Body.Close()
		body := new(strings.Builder)
		if err := response.Write(body); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("status %d, error %v: %s", response.StatusCode, err, body)
		}
		return regexp.MustCompile(`(?m)^(Date|X-Request-Id): .*$`).ReplaceAllString(body.String(), "")
	}
	if now := read(server); !strings.Contains(now, `"name":"Treasury"`) || !strings.Contains(now, `"paused":false`) || !strings.Contains(now, fullURL) {
		t.Errorf("after the restart the relayer is %s", now)
	}
	m.stop(server)

	// Check, and restore: the relayer is paused again.
	if text := m.run("", "check", "--db", database, "--keys", keys, "--require-sealed"); !strings.HasPrefix(text, "no damage found in 1 relayer\n") {
		t.Errorf("check prints %s", text)
	}
	m.run("", "compact", "--db", database)
	m.run("", "restore", "--from", backup, "--db", m.data+"/restored.db")
	server = m.start(m.data + "/restored.db")
	restored := read(server)
	m.stop(server)
	if !strings.Contains(restored, `"paused":true`) {
		t.Errorf("restored is %s", restored)
	}
	if postgres != "" {
		m.run("", "copy", "--from", m.data+"/restored.db", "--to", postgres)
		server = m.start(postgres)
		if copied := read(server); copied != restored {
			t.Errorf("PostgreSQL has\n%s\nand the file\n%s", copied, restored)
		}
		m.stop(server)
	}
	printed := m.printed.String()
	expectNoSecret(t, printed)
	for line := range strings.Lines(string(fileContent(t, filepath.Join(m.outside, "relayer.keys")))) {
		if key := line[strings.LastIndex(line, " ")+1:]; strings.HasPrefix(line, "key ") && strings.Contains(printed, strings.TrimSpace(key)) {
			t.Error("the output has a key")
		}
	}
	if strings.Contains(printed, "level=ERROR") {
		t.Errorf("the log has an error: %s", printed)
	}
}

func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	directory, postgres := t.TempDir(), ""
	if pgserver.Available() == nil || os.Getenv("CI") != "" {
		postgres = newDatabase(t)
	}
	own := func(string) error { return nil }
	machine{t: t, program: program, data: directory, outside: directory, own: own, printed: new(output)}.day(postgres)
}
