package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Tokens of the tests of --tokens-file. Each begins with Secret-5d20c7b19e, so that
// expectNoPassword finds it.
const (
	oldToken    = password + "-old"
	newToken    = password + "-new"
	readerToken = password + "-reader"
)

func writeTokens(t *testing.T, path string, lines ...string) {
	t.Helper()
	temp := path + ".temp"
	if err := os.WriteFile(temp, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, path); err != nil {
		t.Fatal(err)
	}
}

// status sends a request with a token and returns its status.
func (p *process) status(method, path, bearer, body string) (int, error) {
	return p.statusWith(http.DefaultClient, method, path, bearer, body)
}

func (p *process) statusWith(client *http.Client, method, path, bearer, body string) (int, error) {
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Content-Type", "application/json")
	if p.reason != "" {
		request.Header.Set("X-Change-Reason", p.reason)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (p *process) expectStatus(method, path, bearer, body string, want int) {
	p.t.Helper()
	if status, err := p.status(method, path, bearer, body); err != nil || status != want {
		p.t.Errorf("%s %s with %s returned %d, error %v, want %d", method, path, bearer, status, err, want)
	}
}

// reload sends SIGHUP and waits until the log has another line with a text.
func (p *process) reload(text string) {
	p.t.Helper()
	before := strings.Count(p.output.String(), text)
	if err := p.command.Process.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
	p.output.awaitText(p.t, text, before+1)
}

const definition = `{"id":"r-1","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`

func TestTokensFile_Roles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "# operators", "", "alice "+oldToken+" write", "alice\t"+newToken+" write", "  monitoring "+readerToken+"  read")
	server := start(t, "", "--db", "memory", "--tokens-file", path, "--log-level", "debug")
	one := collection + "/r-1"
	server.expectStatus("POST", collection, readerToken, definition, http.StatusForbidden)
	server.expectStatus("POST", collection, oldToken, definition, http.StatusCreated)
	for _, bearer := range []string{oldToken, newToken, readerToken} {
		server.expectStatus("GET", collection, bearer, "", http.StatusOK)
		server.expectStatus("GET", one, bearer, "", http.StatusOK)
		server.expectStatus("HEAD", one, bearer, "", http.StatusOK)
	}
	server.expectStatus("PATCH", one, readerToken, `{"paused":true}`, http.StatusForbidden)
	server.expectStatus("DELETE", one, readerToken, "", http.StatusForbidden)
	server.expectStatus("GET", collection, password, "", http.StatusUnauthorized)
	server.expectStatus("GET", collection, "alice", "", http.StatusUnauthorized)
	server.expectStatus("PATCH", one, newToken, `{"paused":true}`, http.StatusOK)
	server.expectStatus("DELETE", one, newToken, "", http.StatusOK)
	server.stop()
	log := server.output.String()
	if !strings.Contains(log, "principal=alice ") || !strings.Contains(log, "principal=monitoring ") || strings.Contains(log, "API_KEY") {
		t.Errorf("the log is %s", log)
	}
	expectNoPassword(t, log)
}

// A token with a selector sees and changes only the relayers that it selects.
func TestTokensFile_Selector(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "ops "+oldToken+" write", "payments "+newToken+" write label.team=payments|risk", "risk "+readerToken+" read label.team=risk")
	server := start(t, "", "--db", "memory", "--tokens-file", path)
	team := func(id, team string) string {
		return `{"id":"` + id + `","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s","labels":{"team":"` + team + `"}}`
	}
	server.expectStatus("POST", collection, newToken, team("p", "payments"), http.StatusCreated)
	server.expectStatus("POST", collection, newToken, team("o", "other"), http.StatusBadRequest)
	server.expectStatus("POST", collection, oldToken, team("o", "other"), http.StatusCreated)
	server.expectStatus("GET", collection+"/o", newToken, "", http.StatusNotFound)
	server.expectStatus("PATCH", collection+"/o", newToken, `{"paused":true}`, http.StatusNotFound)
	server.expectStatus("PATCH", collection+"/p", newToken, `{"paused":true}`, http.StatusOK)
	server.expectStatus("GET", collection+"/p", readerToken, "", http.StatusNotFound)
	server.expectStatus("PATCH", collection+"/p", newToken, `{"labels":{"team":"risk"}}`, http.StatusOK)
	server.expectStatus("GET", collection+"/p", readerToken, "", http.StatusOK)
	server.expectStatus("PATCH", collection+"/p", readerToken, `{"paused":false}`, http.StatusForbidden)
	server.stop()
}

// An engine reads full RPC URLs, and disables and enables; other tokens do not.
func TestTokensFile_Engine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "ops "+oldToken+" write", "engine "+newToken+" engine network=x")
	server := start(t, "", "--db", "memory", "--tokens-file", path)
	server.expectStatus("POST", collection, oldToken, definition, http.StatusCreated)
	server.expectStatus("POST", collection, oldToken, strings.NewReplacer("r-1", "r-2", `"x"`, `"y"`).Replace(definition), http.StatusCreated)
	one, other, reason := collection+"/r-1", collection+"/r-2", `{"type":"BalanceCheckFailed","details":"d"}`
	for _, c := range []struct {
		bearer                              string
		get, reveal, disable, pause, enable int
	}{
		{newToken, http.StatusOK, http.StatusOK, http.StatusOK, http.StatusForbidden, http.StatusOK},
		{oldToken, http.StatusOK, http.StatusForbidden, http.StatusForbidden, http.StatusOK, http.StatusForbidden},
	} {
		server.expectStatus("GET", one, c.bearer, "", c.get)
		server.expectStatus("GET", one+"?rpc_urls=full", c.bearer, "", c.reveal)
		server.expectStatus("PUT", one+"/disabled_reason", c.bearer, reason, c.disable)
		server.expectStatus("PATCH", one, c.bearer, `{"paused":true}`, c.pause)
		server.expectStatus("DELETE", one+"/disabled_reason", c.bearer, "", c.enable)
	}
	server.expectStatus("PUT", other+"/disabled_reason", newToken, reason, http.StatusNotFound)
	server.stop()

	// One token that may do everything is not for engines.
	server = start(t, token, "--db", "memory")
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	server.expectStatus("PUT", one+"/disabled_reason", token, reason, http.StatusNotFound)
	server.stop()
}

// A rotation under load: clients change from the old to the new token while both
// are valid, and no request fails.
func TestTokensFile_RotationUnderLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", path, "--rate", "0")

	var current atomic.Value
	current.Store(oldToken)
	var requests [8]atomic.Int64
	done := make(chan struct{})
	var clients sync.WaitGroup
	for client := range requests {
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				method, path, body, want := "GET", collection, "", http.StatusOK
				if i%4 == 0 {
					method, want = "POST", http.StatusCreated
					body = strings.Replace(definition, "r-1", fmt.Sprintf("r-%d-%d", client, i), 1)
				}
				status, err := server.status(method, path, current.Load().(string), body)
				if err != nil || status != want {
					t.Errorf("%s returned %d, error %v, want %d", method, status, err, want)
				}
				requests[client].Add(1)
			}
		})
	}
	// awaitRequests waits until each client has ended a request that it started after
	// the call.
	awaitRequests := func() {
		for client := range requests {
			for target := requests[client].Load() + 2; requests[client].Load() < target && !t.Failed(); {
				time.Sleep(time.Millisecond)
			}
		}
	}
	awaitRequests()
	writeTokens(t, path, "alice "+oldToken+" write", "alice "+newToken+" write")
	server.reload(`msg="file reloaded" flag=--tokens-file`)
	awaitRequests()
	current.Store(newToken)
	awaitRequests()
	writeTokens(t, path, "alice "+newToken+" write")
	server.reload(`msg="file reloaded" flag=--tokens-file`)
	awaitRequests()
	close(done)
	clients.Wait()
	server.expectStatus("GET", collection, oldToken, "", http.StatusUnauthorized)
	server.expectStatus("GET", collection, newToken, "", http.StatusOK)
	server.stop()
}

// Files that change are read again without a signal. An invalid one is logged once, and keeps what
// is in use.
func TestServe_ReloadsChangedFiles(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	keys, tokens, signers := keysFileIn(t, directory), filepath.Join(directory, "tokens"), writeFile(t, `{}`)
	writeTokens(t, tokens, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens, "--keys", keys, "--signers", signers)
	server.expectStatus("POST", collection, oldToken, definition, http.StatusBadRequest)
	if err := os.WriteFile(signers, []byte(`{"s":{"evm":"`+evmAddress+`"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, `msg="file reloaded" flag=--signers`, 1)
	server.expectStatus("POST", collection, oldToken, definition, http.StatusCreated)
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	server.output.awaitText(t, `msg="keys read" keys=2`, 1)

	writeTokens(t, tokens, "alice")
	server.output.awaitText(t, `stays in use" flag=--tokens-file`, 1)
	server.expectStatus("GET", collection, oldToken, "", http.StatusOK)
	if err := os.WriteFile(signers, []byte(`[]`), 0o600); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, `stays in use" flag=--signers`, 1)
	writeTokens(t, tokens, "alice sha256:"+fmt.Sprintf("%x", sha256.Sum256([]byte(newToken)))+" write")
	server.output.awaitText(t, "file reloaded\" flag=--tokens-file", 1)
	server.expectStatus("GET", collection, newToken, "", http.StatusOK)
	server.expectStatus("GET", collection, oldToken, "", http.StatusUnauthorized)
	server.stop()
	if log := server.output.String(); strings.Count(log, `stays in use" flag=--tokens-file`) != 1 || strings.Count(log, `stays in use" flag=--signers`) != 1 {
		t.Errorf("an invalid file is not logged once: %s", log)
	}
}

// A digest is the digest of a whole token, and is not a token.
func TestTokensFile_Digest(t *testing.T) {
	t.Parallel()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(newToken)))
	for _, broken := range []string{"sha256:", digest[:len(digest)-1], digest + "00", strings.Replace(digest, ":", ":x", 1)[:len(digest)]} {
		if _, err := parseTokens("alice " + broken + " write\n"); err == nil || strings.Contains(err.Error(), digest[10:20]) {
			t.Errorf("%q: error %v", broken, err)
		}
	}
	if _, err := parseTokens("alice " + digest + " write\nbob " + newToken + " read\n"); err == nil || !strings.Contains(err.Error(), "an earlier line has the same token") {
		t.Errorf("a token and its digest: error %v", err)
	}
	table, err := parseTokens("bob " + digest + " read\n")
	if err != nil {
		t.Fatal(err)
	}
	for bearer, want := range map[string]string{newToken: "bob", digest: ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		if actor, err := table.authenticate(r); actor.ID != want || (err == nil) != (want != "") {
			t.Errorf("the name is %q, error %v, want %q", actor.ID, err, want)
		}
	}
}

func TestTokensFile_InvalidReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", path)
	writeTokens(t, path, "alice "+newToken+" write", "bob "+newToken+" admin")
	server.reload("line 2: the role must be")
	server.expectStatus("GET", collection, oldToken, "", http.StatusOK)
	server.expectStatus("GET", collection, newToken, "", http.StatusUnauthorized)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	server.reload("stays in use\" flag=--tokens-file")
	server.expectStatus("GET", collection, oldToken, "", http.StatusOK)
	server.stop()
	expectNoPassword(t, server.output.String())
}

// A file that a full disk or an interrupted copy has cut off gives no token more rights: it is
// refused, or has whole lines only.
func TestTokensFile_Incomplete(t *testing.T) {
	t.Parallel()
	lines := []string{"# operators", "ops " + oldToken + " write+engine network=x|y", "", "auditor " + readerToken + " read label.team=payments", "  payments\t" + newToken + "\tread label.team=payments "}
	whole := strings.Join(lines, "\n") + "\n"
	for cut := range len(whole) {
		table, err := parseTokens(whole[:cut])
		if isWhole := cut > 0 && whole[cut-1] == '\n'; err == nil && !isWhole {
			t.Errorf("%q has the tokens %v", whole[:cut], table.grants)
		}
	}
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, lines...)
	server := start(t, "", "--db", "memory", "--tokens-file", path)
	for _, cut := range []string{" label.team=payments \n", " \n", "\n"} {
		if err := os.WriteFile(path, []byte(strings.TrimSuffix(whole, cut)), 0o600); err != nil {
			t.Fatal(err)
		}
		server.reload("line 5: the last line has no newline at its end, so that the file may be incomplete")
	}
	server.expectStatus("POST", collection, newToken, definition, http.StatusForbidden)
	server.expectStatus("GET", collection, newToken, "", http.StatusOK)
	server.stop()
	expectFailure(t, "--tokens-file: "+path+": line 5: the last line has no newline", "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--tokens-file", path)
}

// Everybody who can write the file could add a token.
func TestTokensFile_WritableByOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", path)
	writeTokens(t, path, "alice "+oldToken+" write", "mallory "+newToken+" write")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	server.reload("other users can write " + path + ", which has the mode 0666: run chmod o-w")
	server.expectStatus("GET", collection, newToken, "", http.StatusUnauthorized)
	server.expectStatus("GET", collection, oldToken, "", http.StatusOK)
	server.stop()
	expectFailure(t, "--tokens-file: other users can write "+path, "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--tokens-file", path)
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	start(t, "", "--db", "memory", "--tokens-file", path).stop()
}

func TestTokensFile_Readable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "alice "+oldToken+" write")
	const warning = "other users can read the tokens file: run chmod o-rwx"
	server := start(t, "", "--db", "memory", "--tokens-file", path)
	if strings.Contains(server.output.String(), warning) {
		t.Errorf("warning for mode 600: %s", server.output)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	server.reload(warning)
	server.stop()
}

func TestTokensFile_FailedStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, want string }{
		"empty":             {"", "the file contains no token"},
		"comments":          {"# nobody\n", "the file contains no token"},
		"name only":         {"alice", "line 1: must be"},
		"token only":        {"alice " + oldToken + " write\n" + newToken, "line 2: must be"},
		"unknown role":      {"alice " + oldToken + " admin", "line 1: the role must be read, write, engine or backup"},
		"no role":           {"alice " + oldToken, `line 1: must be "name token role" or "name token role selector", with a role such as read or write`},
		"selector, no role": {"alice " + oldToken + " label.team=payments", "line 1: the role must be read, write, engine or backup"},
		"two tokens":        {"alice " + oldToken + " read " + newToken, "line 1: the selector must have"},
		"unknown key":       {"bob " + newToken + " write\nalice " + oldToken + " read team=payments", "line 2: the selector must have"},
		"invalid value":     {"alice " + oldToken + " read network_type=" + newToken, "line 1: the selector must have"},
		"search":            {"alice " + oldToken + " read search=" + newToken, "line 1: the selector must have"},
		"five words":        {"alice " + oldToken + " read network=x " + newToken, "line 1: must be"},
		"invalid name":      {"alice@" + password + " " + oldToken + " write", "line 1: the name must"},
		"long name":         {strings.Repeat("a", 65) + " " + oldToken + " write", "line 1: the name must"},
		"token not ASCII":   {"alice é" + oldToken + " write", "line 1: the token must"},
		"short token":       {"alice " + oldToken + " write\nbob only-15-letters write", "line 2: the token has fewer than 16 bytes: generate one with openssl rand -hex 16"},
		"UTF-8 mark":        {"\ufeffalice " + oldToken, "line 1: must be"},
		"UTF-16 mark":       {"\xff\xfea\x00l\x00", "line 1: must be"},
		"token twice":       {"alice " + oldToken + " write\nbob " + oldToken + " write", "line 2: an earlier line has the same token"},
		"two roles":         {"alice " + oldToken + " write\nalice " + newToken + " read", "line 2: an earlier line gives this name another role"},
		"two selectors":     {"alice " + oldToken + " read network=x\nalice " + newToken + " read", "line 2: an earlier line gives this name another role or selector"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tokens")
			if err := os.WriteFile(path, []byte(c.content+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			expectFailure(t, "--tokens-file: "+path+": "+c.want, "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--tokens-file", path)
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	expectFailure(t, "--tokens-file: there is no file "+missing+": create it with a line", "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--tokens-file", missing)
	expectFailure(t, "--tokens-file must be a file", "serve", "--tokens-file", "postgres://u:"+password+"@h/d")
	expectFailedStart(t, "--tokens-file and API_KEY are both set: unset API_KEY", "--db", "memory", "--tokens-file", missing)
}
