package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A token with the role backup copies the file of a running server, and does nothing else.
func TestBackup_OfServer(t *testing.T) {
	t.Parallel()
	directory, tokens := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "saver "+token+" backup", "ops "+oldToken+" write+engine", "both "+newToken+" read+backup", "twice 0123456789abcdef-twice backup+backup")
	server := start(t, "", "--db", makeFile(t, 30), "--tokens-file", tokens)
	server.expectStatus("POST", collection, oldToken, definition, http.StatusConflict)
	for bearer, want := range map[string][3]int{
		token:    {http.StatusOK, http.StatusForbidden, http.StatusNotFound},
		newToken: {http.StatusOK, http.StatusOK, http.StatusOK},

		"0123456789abcdef-twice": {http.StatusOK, http.StatusForbidden, http.StatusNotFound},
		oldToken:                 {http.StatusNotFound, http.StatusOK, http.StatusOK},
		"wrong":                  {http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		server.expectStatus("GET", backupPath, bearer, "", want[0])
		server.expectStatus("GET", collection, bearer, "", want[1])
		server.expectStatus("GET", "/metrics", bearer, "", want[2])
	}
	path := filepath.Join(directory, "backup.db")
	done := finish(t, "", program(token, "backup", "--server", server.url, "--to", path))
	if done.status != 0 || done.stdout+done.stderr != "copied 30 relayers\n" {
		t.Errorf("output %+v", done)
	}
	expectCopied(t, path, path)
	if content := contentOf(t, path); len(content) != 30 {
		t.Errorf("the backup has %d relayers, want 30", len(content))
	}
	expectFailureWith(t, path+" exists: move it to another name first", token, "backup", "--server", server.url, "--to", path)
	expectFailureWith(t, "needs the role backup", oldToken, "backup", "--server", server.url, "--to", path+"2")
	expectFailureWith(t, "status 401", "wrong-"+token, "backup", "--server", server.url, "--to", path+"2")
	expectFailureWith(t, "were all set", token, "backup", "--server", server.url, "--db", path, "--to", path+"2")
	expectFiles(t, directory, "backup.db")
	server.stop()
	expectNoPassword(t, server.output.String())
	if !strings.Contains(server.output.String(), `msg="backup sent" principal=saver `) {
		t.Errorf("the log does not name the backup: %s", server.output)
	}
}

// A redirect neither gets the token nor gives the backup.
func TestBackup_Redirect(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	t.Cleanup(server.Close)
	expectFailureWith(t, "status 302", token, "backup", "--server", server.URL, "--to", filepath.Join(t.TempDir(), "backup.db"))
	if len(asked) > 0 {
		t.Errorf("the other server got %q", <-asked)
	}
}

// While clients write, each copy is whole. Only one is written at a time.
func TestBackup_OfBusyServer(t *testing.T) {
	t.Parallel()
	directory, tokens := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "ops "+token+" write+backup")
	database := makeFile(t, 2000)
	server := start(t, "", "--db", database, "--tokens-file", tokens)
	done := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				server.expectStatus("PATCH", collection+"/r-1", token, fmt.Sprintf(`{"name":"n%d"}`, i), http.StatusOK)
			}
		}
	})
	busy := 0
	var copying sync.WaitGroup
	statuses := make(chan int, 16)
	for range cap(statuses) {
		copying.Go(func() {
			status, err := server.status("GET", backupPath, token, "")
			if err != nil {
				t.Error(err)
			}
			statuses <- status
		})
	}
	copying.Wait()
	close(statuses)
	for status := range statuses {
		switch status {
		case http.StatusServiceUnavailable:
			busy++
		case http.StatusOK:
		default:
			t.Errorf("a backup returned %d", status)
		}
	}
	if busy == 0 {
		t.Error("all backups were written at once")
	}
	for i := range 3 {
		path := filepath.Join(directory, fmt.Sprint(i))
		expect(t, 0, "backup", "--server", server.url, "--to", path)
		expect(t, 0, "check", "--db", path)
	}
	close(done)
	writing.Wait()
	server.stop()
	entries, err := os.ReadDir(filepath.Dir(database))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory of the database has %v, error %v", entries, err)
	}
}

func TestBackup_OfPostgresServer(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "saver "+token+" backup")
	server := start(t, "", "--db", location(t, startPostgres(t), "postgres"), "--tokens-file", tokens)
	server.expectStatus("GET", backupPath, token, "", http.StatusNotFound)
	expectFailureWith(t, "use pg_dump for PostgreSQL", token, "backup", "--server", server.url, "--to", filepath.Join(t.TempDir(), "x"))
	server.stop()
}
