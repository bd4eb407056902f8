//go:build unix

package main

import (
	"bufio"
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
)

// auditLine is a line of the audit in JSON.
type auditLine struct {
	Time        time.Time `json:"time"`
	Message     string    `json:"msg"`
	Actor       string    `json:"actor"`
	Address     string    `json:"address"`
	RequestID   string    `json:"request_id"`
	Action      string    `json:"action"`
	RelayerID   string    `json:"relayer_id"`
	Outcome     string    `json:"outcome"`
	OldRevision uint64    `json:"old_revision"`
	Revision    uint64    `json:"revision"`
	Changed     []string  `json:"changed"`
	Paused      *bool     `json:"paused"`
	Reason      string    `json:"reason"`
}

func (l auditLine) String() string {
	text := fmt.Sprintf("%s %s %s %s %d>%d", l.Actor, l.Action, l.RelayerID, l.Outcome, l.OldRevision, l.Revision)
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

// auditLines returns the lines of the audit in a log in JSON.
func auditLines(t *testing.T, log string) (lines []auditLine) {
	t.Helper()
	for text := range strings.Lines(log) {
		var line auditLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line.Message == "audit" {
			lines = append(lines, line)
		}
	}
	return lines
}

// startJSON is start for a server that logs in JSON.
func startJSON(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, output: new(output)}
	p.command = serverCommand("", append([]string{"--addr", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	p.output.awaitText(t, `"msg":"serving","address":"`, 1)
	_, address, _ := strings.Cut(p.output.String(), `"msg":"serving","address":"`)
	address, _, _ = strings.Cut(address, `"`)
	p.url = "http://" + address
	return p
}

// One line for each write and each refusal says who, what, and when, without any secret.
func TestAudit_WritesAndRefusals(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	tokens := filepath.Join(directory, "tokens")
	writeTokens(t, tokens, "ops "+oldToken+" write", "payments "+newToken+" write label.team=payments", "auditor "+readerToken+" read",
		"engine "+password+"-engine engine")
	server := startJSON(t, "--db", filepath.Join(directory, "relayers.db"), "--tokens-file", tokens)
	one := collection + "/a"
	server.expectStatus("POST", collection, oldToken, sealedURL("a"), http.StatusCreated)
	server.expectStatus("POST", collection+":validate", oldToken, sealedURL("b"), http.StatusOK)
	server.expectStatus("POST", collection, oldToken, sealedURL("a"), http.StatusConflict)
	server.expectStatus("PATCH", one, oldToken, `{"paused":true}`, http.StatusOK)
	server.expectStatus("PATCH", one+"?dry_run=true", oldToken, `{"paused":false}`, http.StatusOK)
	server.expectStatus("PATCH", one, oldToken, `{"name":"m","custom_rpc_urls":[{"url":"https://rpc.example/`+urlSecret+`2"}]}`, http.StatusOK)
	server.expectStatus("PATCH", one, newToken, `{"paused":false}`, http.StatusNotFound)
	server.expectStatus("PATCH", one, readerToken, `{"paused":false}`, http.StatusForbidden)
	server.expectStatus("DELETE", collection+"/"+urlSecret+".", readerToken, "", http.StatusForbidden)
	server.expectStatus("GET", "/api/v1/access", readerToken, "", http.StatusOK)
	server.expectStatus("GET", one, readerToken, "", http.StatusOK)
	server.expectStatus("GET", one+"?rpc_urls=full", password+"-engine", "", http.StatusOK)
	server.expectStatus("GET", collection+"/none?rpc_urls=full", password+"-engine", "", http.StatusNotFound)
	server.expectStatus("GET", one+"?rpc_urls=full", oldToken, "", http.StatusForbidden)
	server.expectStatus("PUT", collection+"/none/disabled_reason", password+"-engine", `{"type":"x","details":"y"}`, http.StatusNotFound)
	server.expectStatus("PUT", one+"/disabled_reason", oldToken, `{"type":"x","details":"y"}`, http.StatusForbidden)
	server.expectStatus("PUT", one+"/disabled_reason", password+"-engine", `{"type":"BalanceCheckFailed","details":"`+fullURL+`"}`, http.StatusOK)
	server.reason = "incident 42"
	server.expectStatus("PATCH", one, oldToken, `{"paused":false,"name":"n"}`, http.StatusOK)
	server.expectStatus("PATCH", one, oldToken, `{"paused":false}`, http.StatusOK)
	server.expectStatus("PATCH", one, oldToken, `{"name":""}`, http.StatusBadRequest)
	server.expectStatus("DELETE", one, oldToken, "", http.StatusOK)
	expectUnsupportedType(t, server)
	server.stopJSON()

	log := server.output.String()
	expectNoPassword(t, log)
	expectNoURL(t, log)
	lines := auditLines(t, log)
	var got []string
	for _, line := range lines {
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
		"auditor update a forbidden 0>0",
		"auditor delete  forbidden 0>0",
		"engine reveal a ok 0>0",
		"engine reveal none not_found 0>0",
		"ops reveal a forbidden 0>0",
		"engine disable none not_found 0>0",
		"ops disable a forbidden 0>0",
		"engine disable a ok 3>4 disabled_reason.details,disabled_reason.type,system_disabled",
		"ops update a ok 4>5 name,paused paused=false because of incident 42",
		"ops resume a ok 5>5 because of incident 42",
		"ops update a invalid 5>5 because of incident 42",
		"ops delete a ok 5>0 because of incident 42",
	}; !slices.Equal(got, want) {
		t.Errorf("the audit is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// expectUnsupportedType sends a create that is refused before it reaches the registry.
func expectUnsupportedType(t *testing.T, server *process) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, server.url+collection, strings.NewReader(definition))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+oldToken)
	request.Header.Set("Content-Type", "text/plain")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a create in text/plain returned %d, want 415", response.StatusCode)
	}
}

// stopJSON is stop for a log in JSON.
func (p *process) stopJSON() {
	p.t.Helper()
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		p.t.Fatalf("after SIGINT: error %v: %s", err, p.output)
	}
}

func TestAudit_Off(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--log-writes=false")
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	server.stop()
	if log := server.output.String(); strings.Contains(log, "audit") {
		t.Errorf("the log is %s", log)
	}
}

// What the server seals again has an actor that no token can have.
func TestAudit_Resealing(t *testing.T) {
	directory := t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.stop()
	server = start(t, token, "--db", database, "--keys", keysFileIn(t, directory))
	server.output.awaitText(t, "stored=1", 1)
	server.stop()
	server.output.awaitText(t, "msg=audit actor=relayerd:reseal ", 1)
}

// A log that is not read, or that fails, neither blocks nor fails a write.
func TestAudit_LogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, breakLog := range map[string]func(t *testing.T, reader *os.File){
		"not read": func(*testing.T, *os.File) {},
		"closed": func(t *testing.T, reader *os.File) {
			if err := reader.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			p := &process{t: t, command: serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory", "--log-requests")}
			p.command.Stderr = writer
			if err := p.command.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.command.Process.Kill() })
			_ = writer.Close()
			for lines := bufio.NewScanner(reader); p.url == "" && lines.Scan(); {
				if found := listening.FindStringSubmatch(lines.Text()); found != nil {
					p.url = "http://" + found[1]
				}
			}
			p.expectStatus("POST", collection, token, definition, http.StatusCreated)
			breakLog(t, reader)
			// The log of these is larger than what a pipe holds.
			for i := range 1000 {
				p.expectStatus("PATCH", collection+"/r-1", token, fmt.Sprintf(`{"name":"n%d"}`, i), http.StatusOK)
			}
			if _, metrics := p.do("GET", "/metrics", ""); !strings.Contains(metrics, "relayerd_log_lines_dropped_total") ||
				name == "closed" && strings.Contains(metrics, "relayerd_log_lines_dropped_total 0\n") {
				t.Errorf("the metrics do not count the lines that were lost:\n%s", metrics)
			}
			if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := p.command.Wait(); err != nil {
				t.Errorf("after SIGTERM: %v", err)
			}
		})
	}
}
