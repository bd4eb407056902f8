package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An operator without a browser pauses a selection, and resumes what that request has paused.
func TestPause_Commands(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "ops "+token+" write", "auditor "+readerToken+" read")
	server := start(t, "", "--db", filepath.Join(t.TempDir(), "relayers.db"), "--tokens-file", tokens)
	defer server.stop()
	for _, id := range []string{"a", "b", "c", "d"} {
		server.expectStatus("POST", collection, token, strings.NewReplacer("r-1", id, `"x"`, `"`+map[bool]string{true: "x", false: "y"}[id < "d"]+`"`).Replace(definition), http.StatusCreated)
	}
	server.expectStatus("PATCH", collection+"/a", token, `{"paused":true}`, http.StatusOK)
	expectPaused := func(want string) {
		t.Helper()
		_, body := server.do("GET", collection+"?paused=true", "")
		got := ""
		for _, found := range regexp.MustCompile(`"id":"(\w+)"`).FindAllStringSubmatch(body, -1) {
			got += found[1]
		}
		if got != want {
			t.Errorf("paused are %q, want %q", got, want)
		}
	}
	done := expect(t, 0, "pause", "--server", server.url, "--selector", "network=x", "--reason", "incident 42")
	printed := regexp.MustCompile(`^paused 2 relayers, 1 unchanged, request (\S+)\n$`).FindStringSubmatch(done.stdout)
	if printed == nil {
		t.Fatalf("printed %+v", done)
	}
	expectPaused("abc")
	if history := expect(t, 0, "history", "b", "--server", server.url, "--changed", "paused").stdout; !strings.Contains(history, "ops  ") || !strings.Contains(history, "paused=true") || !strings.Contains(history, "incident 42") {
		t.Errorf("the history is %s", history)
	}
	if done := expect(t, 0, "resume", "--server", server.url, "--paused-by", printed[1]); !strings.HasPrefix(done.stdout, "resumed 2 relayers, ") {
		t.Errorf("printed %+v", done)
	}
	expectPaused("a")
	expect(t, 0, "pause", "--server", server.url, "--all")
	expectPaused("abcd")
	expect(t, 0, "resume", "--server", server.url, "--selector", "network=y")
	expectPaused("abc")
	expectFailureWith(t, "--selector is required: name the relayers, such as with network=sepolia, or use --all", token, "pause", "--server", server.url)
	expectFailureWith(t, "--selector is required", token, "resume", "--server", server.url)
	expectFailureWith(t, "were all set", token, "resume", "--server", server.url, "--all", "--selector", "network=x")
	expectFailureWith(t, "403", readerToken, "pause", "--server", server.url, "--all")
	expectPaused("abc")
}
