//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
)

// auditLine is a line in JSON about a write, a read of full RPC URLs, or a refused request.
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
	Revision    uint64    `json:"revision"`
	Changed     []string  `json:"changed"`
	Paused      *bool     `json:"paused"`
	Reason      string    `json:"reason"`
	Count       int       `json:"count"`
}

const (
	writeLine     = "audit"
	revealLine    = "full RPC URLs requested"
	forbiddenLine = "request forbidden"
)

func (l auditLine) String() string {
	switch l.Message {
	case revealLine:
		return fmt.Sprintf("%s reveal %s", l.Principal, l.RelayerID)
	case forbiddenLine:
		return fmt.Sprintf("%s %s %s forbidden", l.Principal, l.Action, l.RelayerID)
	}
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

// auditLines returns the lines of a log in JSON about writes, reads of full RPC URLs and
// refused requests.
func auditLines(t *testing.T, log string) (lines []auditLine) {
	t.Helper()
	for text := range strings.Lines(log) {
		var line auditLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if line.Message == writeLine || line.Message == revealLine || line.Message == forbiddenLine {
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

// One line for each write, each read of full RPC URLs and each refusal says who, what, and when, without any secret.
func TestAudit_WritesAndRefusals(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	tokens := filepath.Join(directory, "tokens")
	writeTokens(t, tokens, "ops "+oldToken+" write", "payments "+newToken+" write label.team=payments", "auditor "+readerToken+" read",
		"engine "+password+"-engine engine")
	server := startJSON(t, "--db", filepath.Join(directory, "relayers.db"), "--tokens-file", tokens)
	one := collection + "/a"
	server.expectStatus("POST", collection, oldToken, sealedURL("a"), http.StatusCreated)
	server.expectStatus("POST", collection+"?dry_run=true", oldToken, sealedURL("b"), http.StatusOK)
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
	if regexp.MustCompile(`"old_revision":[1-9]\d*,"revision":0`).MatchString(log) {
		t.Errorf("the line of a delete has a revision: %s", log)
	}
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
		"auditor update a forbidden",
		"auditor delete  forbidden",
		"engine reveal a",
		"engine reveal none",
		"ops reveal a forbidden",
		"engine disable none not_found 0>0",
		"ops disable a forbidden",
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

// TestAudit_FailedWrites: of each actor, action and outcome, the first failed write is logged
// at once, and the later ones once a second with their count. All other writes have a line.
func TestAudit_FailedWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := new(output)
		audit := newAuditLog(slog.New(slog.NewJSONHandler(log, nil)))
		read := 0
		expectNew := func(want ...string) {
			t.Helper()
			synctest.Wait()
			got := []string{}
			lines := auditLines(t, log.String())
			for _, line := range lines[read:] {
				got = append(got, fmt.Sprintf("%s %s %s %s %d", line.Actor, line.Action, line.RelayerID, line.Outcome, line.Count))
			}
			read = len(lines)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the new lines are %q, want %q", got, want)
			}
		}
		write := func(actor string, action relayer.Action, id string, err error) {
			operation := &relayer.Operation{Actor: relayer.Actor{ID: actor}, Action: action, ID: id}
			_, end := audit.observe(t.Context(), operation)
			end(err)
			*operation = relayer.Operation{} // it must not be kept
		}
		for i := range 3 {
			id := fmt.Sprint("r-", i)
			write("a", relayer.ActionDelete, id, relayer.ErrNotFound)
			write("a", relayer.ActionDelete, id, relayer.ErrConflict)
			write("b", relayer.ActionDelete, id, relayer.ErrNotFound)
			write("a", relayer.ActionUpdate, id, relayer.ErrNotFound)
		}
		expectNew("a delete r-0 conflict 1", "a delete r-0 not_found 1", "a update r-0 not_found 1", "b delete r-0 not_found 1")
		for _, err := range []error{nil, relayer.ErrOutcomeUnknown, relayer.ErrUnavailable, io.ErrUnexpectedEOF} {
			write("a", relayer.ActionDelete, "x", err)
			write("a", relayer.ActionDelete, "x", err)
		}
		expectNew("a delete x error 0", "a delete x error 0", "a delete x ok 0", "a delete x ok 0",
			"a delete x unavailable 0", "a delete x unavailable 0", "a delete x unknown_outcome 0", "a delete x unknown_outcome 0")
		time.Sleep(time.Second)
		expectNew("a delete r-2 conflict 2", "a delete r-2 not_found 2", "a update r-2 not_found 2", "b delete r-2 not_found 2")
		// After a second without failed writes, the next one is logged at once.
		time.Sleep(2 * time.Second)
		write("a", relayer.ActionDelete, "y", relayer.ErrNotFound)
		write("a", relayer.ActionDelete, "z", relayer.ErrNotFound)
		expectNew("a delete y not_found 1")
		audit.stop()
		expectNew("a delete z not_found 1")
		write("a", relayer.ActionDelete, "late", relayer.ErrNotFound)
		expectNew("a delete late not_found 1")
		time.Sleep(time.Minute)
		expectNew()
	})
}

// The end of the process that reads the log neither fails a write nor ends the server.
func TestAudit_ClosedLog(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	p := &process{t: t, command: serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory")}
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
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		p.expectStatus("PATCH", collection+"/r-1", token, fmt.Sprintf(`{"name":"n%d"}`, i), http.StatusOK)
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// A token limited to a team whose writes fail as often as it can does not hide the writes of
// another token: each of these has a line, and a line each second counts the failed ones.
func TestAudit_FloodOfFailedWrites(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "ops "+oldToken+" write", "payments "+newToken+" write label.team=payments")
	server := startJSON(t, "--db", "memory", "--tokens-file", tokens)
	server.expectStatus("POST", collection, oldToken, definition, http.StatusCreated)
	var deletes, creates atomic.Int64
	began := time.Now()
	ctx, end := context.WithCancel(t.Context())
	var flooding sync.WaitGroup
	flood := func(method, path, body string, want int, failed *atomic.Int64) {
		flooding.Go(func() {
			client := &http.Client{Transport: new(http.Transport)}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				if status, err := server.statusWith(client, method, path, newToken, body); err != nil || status != want {
					t.Errorf("%s %s returned %d, error %v, want %d", method, path, status, err, want)
					return
				}
				failed.Add(1)
			}
		})
	}
	for range 2 {
		flood("DELETE", collection+"/nope", "", http.StatusNotFound, &deletes)
		flood("POST", collection, "{}", http.StatusBadRequest, &creates)
	}
	const writes = 20
	for i := range writes {
		before := deletes.Load() + creates.Load()
		if !await(func() bool { return deletes.Load()+creates.Load() >= before+20 }) {
			t.Fatal("the flood has ended")
		}
		server.expectStatus("PATCH", collection+"/r-1", oldToken, fmt.Sprintf(`{"name":"n%d"}`, i), http.StatusOK)
	}
	server.output.awaitText(t, `"outcome":"not_found"`, 3)
	server.output.awaitText(t, `"outcome":"invalid"`, 3)
	end()
	flooding.Wait()
	seconds := time.Since(began).Seconds()
	server.stopJSON()

	written, lines, counted := 0, make(map[string]int), make(map[string]int)
	for _, line := range auditLines(t, server.output.String()) {
		if line.Actor == "ops" && line.Action == "update" && line.Outcome == "ok" {
			written++
		}
		lines[line.Outcome]++
		counted[line.Outcome] += line.Count
	}
	if written != writes {
		t.Errorf("%d of %d writes are in the log", written, writes)
	}
	for outcome, failed := range map[string]int64{"not_found": deletes.Load(), "invalid": creates.Load()} {
		// The first line, one at the end of each second, and one when the server stops.
		if most := int(seconds) + 2; lines[outcome] > most || int64(counted[outcome]) != failed {
			t.Errorf("%d lines %s in %.1f s count %d of %d failed writes", lines[outcome], outcome, seconds, counted[outcome], failed)
		}
	}
	t.Logf("%d deletes and %d creates failed in %.1f s", deletes.Load(), creates.Load(), seconds)
}
