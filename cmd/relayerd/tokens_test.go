package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writeTokens(t *testing.T, path string, lines ...string) {
	t.Helper()
	writeFile(t, path, strings.Join(lines, "\n")+"\n")
}

// Each role permits what it must and nothing else, and a selector hides the other relayers.
func TestTokensFile_Grants(t *testing.T) {
	t.Parallel()
	const engine, payments, risk = password + "-engine", password + "-payments", password + "-risk"
	tokens := newTokens(t, "# operators", "", "alice "+oldToken+" write", "alice\t"+newToken+" write", "  monitoring "+readerToken+"  read",
		"engine "+engine+" engine network=x", "payments "+payments+" write label.team=payments|risk", "risk "+risk+" read label.team=risk")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens, "--log-level", "debug")
	const one, other, reason = collection + "/r-1", collection + "/r-2", `{"type":"BalanceCheckFailed","details":"d"}`
	server.expect("POST", collection, readerToken, definition, http.StatusForbidden)
	server.expect("POST", collection, oldToken, definition, http.StatusCreated)
	server.expect("POST", collection, oldToken, strings.NewReplacer("r-1", "r-2", `"x"`, `"y"`).Replace(definition), http.StatusCreated)
	for _, bearer := range []string{oldToken, newToken, readerToken, engine} {
		for _, method := range []string{"GET", "HEAD"} {
			server.expect(method, collection, bearer, "", http.StatusOK)
			server.expect(method, one, bearer, "", http.StatusOK)
		}
	}
	for _, bearer := range []string{password, "alice", ""} {
		server.expect("GET", collection, bearer, "", http.StatusUnauthorized)
	}
	for _, c := range []struct {
		bearer                               string
		reveal, disable, pause, enable, gone int
	}{
		{engine, http.StatusOK, http.StatusOK, http.StatusForbidden, http.StatusOK, http.StatusForbidden},
		{readerToken, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden, http.StatusForbidden},
		{payments, http.StatusForbidden, http.StatusForbidden, http.StatusNotFound, http.StatusForbidden, http.StatusNotFound},
		{newToken, http.StatusForbidden, http.StatusForbidden, http.StatusOK, http.StatusForbidden, http.StatusOK},
	} {
		server.expect("GET", one+"?rpc_urls=full", c.bearer, "", c.reveal)
		server.expect("PUT", one+"/disabled_reason", c.bearer, reason, c.disable)
		server.expect("PATCH", one, c.bearer, `{"paused":true}`, c.pause)
		server.expect("DELETE", one+"/disabled_reason", c.bearer, "", c.enable)
		server.expect("DELETE", one, c.bearer, "", c.gone)
	}
	server.expect("PUT", other+"/disabled_reason", engine, reason, http.StatusNotFound)

	team := func(id, team string) string {
		return strings.Replace(definitionOf(id), "{", `{"labels":{"team":"`+team+`"},`, 1)
	}
	server.expect("POST", collection, payments, team("o", "other"), http.StatusBadRequest)
	server.expect("POST", collection, payments, team("p", "payments"), http.StatusCreated)
	server.expect("GET", collection+"/p", risk, "", http.StatusNotFound)
	server.expect("PATCH", collection+"/p", payments, `{"labels":{"team":"risk"}}`, http.StatusOK)
	server.expect("GET", collection+"/p", risk, "", http.StatusOK)
	server.expect("PATCH", collection+"/p", risk, `{"paused":false}`, http.StatusForbidden)
	server.stop()
	log := server.output.String()
	if !strings.Contains(log, "principal=alice ") || !strings.Contains(log, "principal=monitoring ") || strings.Contains(log, apiKeyName) {
		t.Errorf("the log is %s", log)
	}
	expectNoSecret(t, log)
}

// The token in API_KEY writes, is not for engines, and is in no line of the log. A client that is no
// trusted proxy cannot choose its address in the log.
func TestAPIKey(t *testing.T) {
	t.Parallel()
	server := startMemory(t, "--log-level", "debug")
	server.expect("POST", collection, token, definition, http.StatusCreated)
	server.expect("PUT", collection+"/r-1/disabled_reason", token, `{"type":"x","details":"d"}`, http.StatusNotFound)
	_, _, err := server.try(http.DefaultClient, "DELETE", collection+"/nobody", token, "", "X-Forwarded-For", "198.51.100.1")
	must(t, err)
	server.stop()
	if log := server.output.String(); !strings.Contains(log, "msg=request ") || strings.Contains(log, token) || strings.Contains(log, "198.51.100.1") || !strings.Contains(log, "principal="+apiKeyName+" ") {
		t.Errorf("the log is %s", log)
	}
}

// Files that change are read again without a signal, and after SIGHUP. An invalid one is logged once,
// and keeps what is in use. Clients change their token while both are valid.
func TestServe_ReloadsChangedFiles(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	keys, tokens, signers := keysFileIn(t, directory), filepath.Join(directory, "tokens"), newFile(t, `{}`)
	writeTokens(t, tokens, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens, "--keys", keys, "--signers", signers)
	server.expect("POST", collection, oldToken, definition, http.StatusBadRequest)
	writeFile(t, signers, `{"s":{"evm":"`+evmAddress+`"}}`)
	server.output.awaitText(t, `msg="file reloaded" flag=--signers`, 1)
	server.expect("POST", collection, oldToken, definition, http.StatusCreated)
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	server.output.awaitText(t, `msg="file reloaded" flag=--keys`, 1)

	writeTokens(t, tokens, "alice "+newToken+" write", "bob "+newToken+" admin")
	server.output.awaitText(t, `stays in use" flag=--tokens-file error="--tokens-file: `+tokens+`: line 2: the role must be`, 1)
	server.expect("GET", collection, oldToken, "", http.StatusOK)
	server.expect("GET", collection, newToken, "", http.StatusUnauthorized)
	writeFile(t, signers, `[]`)
	server.output.awaitText(t, `stays in use" flag=--signers`, 1)
	must(t, os.Remove(tokens))
	server.output.awaitText(t, `stays in use" flag=--tokens-file`, 2)
	writeTokens(t, tokens, "alice "+oldToken+" write", "alice sha256:"+fmt.Sprintf("%x", sha256.Sum256([]byte(newToken)))+" write")
	server.output.awaitText(t, `file reloaded" flag=--tokens-file`, 1)
	server.expect("GET", collection, newToken, "", http.StatusOK)
	server.expect("GET", collection, oldToken, "", http.StatusOK)
	if log := server.output.String(); strings.Count(log, `line 2: the role must be`) != 1 || strings.Count(log, `stays in use" flag=--signers`) != 1 {
		t.Errorf("an invalid file is not logged once: %s", log)
	}
	writeTokens(t, tokens, "alice "+newToken+" write")
	server.reload(`file reloaded" flag=--tokens-file`)
	server.expect("GET", collection, oldToken, "", http.StatusUnauthorized)

	// Everybody who can write the file could add a token.
	must(t, os.Chmod(tokens, 0o666))
	server.output.awaitText(t, "other users can write "+tokens+", which has the mode 0666: run chmod o-w", 1)
	server.expect("GET", collection, newToken, "", http.StatusOK)
	reloads := strings.Count(server.output.String(), `file reloaded" flag=--tokens-file`)
	must(t, os.Chmod(tokens, 0o600))
	server.output.awaitText(t, `file reloaded" flag=--tokens-file`, reloads+1)
	// A file that is away again, after it was back unchanged, has another line.
	lines := func() int { return strings.Count(server.output.String(), tokens+": no such file") }
	for first, begun := lines(), time.Now(); lines() < first+2 && time.Since(begun) < 30*time.Second; time.Sleep(checkInterval * 3 / 2) {
		must(t, os.Rename(tokens, tokens+".away"))
		time.Sleep(checkInterval * 3 / 2)
		must(t, os.Rename(tokens+".away", tokens))
	}
	if lines() < 3 {
		t.Errorf("%d lines of a missing file: %s", lines(), server.output.String())
	}
	server.stop()
	must(t, os.Chmod(tokens, 0o666))
	expectFailureWith(t, "--tokens-file: other users can write "+tokens, "", "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--tokens-file", tokens)
}

// A file that a full disk or an interrupted copy has cut off gives no token more rights: it is
// refused, or has whole lines only.
func TestParseTokens_Incomplete(t *testing.T) {
	t.Parallel()
	whole := "# operators\nops " + oldToken + " write+engine network=x|y\n\nauditor " + readerToken + " read label.team=payments\n  payments\t" + newToken + "\tread label.team=payments \n"
	for cut := range len(whole) {
		table, err := parseTokens(whole[:cut])
		if isWhole := cut > 0 && whole[cut-1] == '\n'; err == nil && !isWhole {
			t.Errorf("%q has the tokens %v", whole[:cut], table.grants)
		}
	}
	if table, err := parseTokens(whole); err != nil || len(table.names) != 3 {
		t.Errorf("the whole file has %v, error %v", table, err)
	}
}

func TestParseTokens_Invalid(t *testing.T) {
	t.Parallel()
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(newToken)))
	for text, want := range map[string]string{
		"":         "the file contains no token",
		"# nobody": "the file contains no token",
		"alice":    "line 1: must be",
		"alice " + oldToken + " write\n" + newToken:                          "line 2: must be",
		"alice " + oldToken + " admin":                                       "line 1: the role must be read, write, engine or backup",
		"alice " + oldToken:                                                  `line 1: must be "name token role" or "name token role selector", with a role such as read or write`,
		"alice " + oldToken + " label.team=payments":                         "line 1: the role must be read, write, engine or backup",
		"alice " + oldToken + " read " + newToken:                            "line 1: the selector must have",
		"alice " + oldToken + " read team=payments":                          "line 1: the selector must have",
		"alice " + oldToken + " read search=" + newToken:                     "line 1: the selector must have",
		"alice " + oldToken + " backup network=x":                            "line 1: the role backup has no selector",
		"alice " + oldToken + " read network=x " + newToken:                  "line 1: must be",
		"alice@" + password + " " + oldToken + " write":                      "line 1: the name must",
		strings.Repeat("a", 65) + " " + oldToken + " write":                  "line 1: the name must",
		"alice é" + oldToken + " write":                                      "line 1: the token is empty or contains spaces, control or non-ASCII characters",
		"alice only-15-letters write":                                        "line 1: the token has fewer than 16 bytes: generate one with openssl rand -hex 16",
		"\ufeffalice " + oldToken:                                            "line 1: must be",
		"alice " + oldToken + " write\nbob " + oldToken + " write":           "line 2: an earlier line has the same token",
		"alice " + digest + " write\nbob " + newToken + " read":              "line 2: an earlier line has the same token",
		"alice " + oldToken + " write\nalice " + newToken + " read":          "line 2: an earlier line gives this name another role",
		"alice " + oldToken + " read network=x\nalice " + newToken + " read": "line 2: an earlier line gives this name another role or selector",
		"alice sha256:" + strings.Repeat("0", 60) + " write":                 "line 1: sha256: must be followed by",
		"alice " + digest + "00 write":                                       "line 1: sha256: must be followed by",
		"alice sha256:x" + digest[8:] + " write":                             "line 1: sha256: must be followed by",
	} {
		_, err := parseTokens(text + "\n")
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
			continue
		}
		expectNoSecret(t, err.Error())
		if strings.Contains(err.Error(), digest[20:]) {
			t.Errorf("the error has a digest: %v", err)
		}
	}
}
