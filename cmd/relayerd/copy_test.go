package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// makeFile creates a file with count relayers.
func makeFile(t *testing.T, count int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.db")
	file := mustGet(bolt.Open(t.Context(), path))(t)
	defer file.Close()
	origin := memory.New()
	manager := mustGet(relayer.New(origin, relayer.WithExclusiveSigners()))(t)
	for i := range count {
		_, err := manager.Create(t.Context(), relayer.CreateRequest{
			ID: fmt.Sprintf("r-%d", i), Name: strings.Repeat("n", 300), Network: "sepolia", NetworkType: relayer.EVM, SignerID: fmt.Sprint("s-", i),
			CustomRPCURLs: []relayer.RPCConfig{{URL: relayer.RPCURL(fmt.Sprint("https://rpc.example/", i))}},
		})
		must(t, err)
	}
	all := mustGet(origin.List(t.Context(), relayer.StoreQuery{Limit: count}))(t)
	for batch := range slices.Chunk(all.Records, 500) {
		must(t, file.Import(t.Context(), batch))
	}
	return path
}

// contentOf returns all records of a store, in order.
func contentOf(t *testing.T, name string) (content []relayer.Record) {
	t.Helper()
	store := mustGet(database{"--db", name}.open(t.Context()))(t)
	defer store.Close()
	for {
		page := mustGet(store.List(t.Context(), relayer.StoreQuery{Offset: len(content), Limit: 1000}))(t)
		content = append(content, page.Records...)
		if len(content) == page.Total {
			return content
		}
	}
}

func expectCopied(t *testing.T, destination, source string) {
	t.Helper()
	if got, want := contentOf(t, destination), contentOf(t, source); !reflect.DeepEqual(got, want) {
		t.Errorf("%d records differ from the %d copied", len(got), len(want))
	}
}

// damage changes a stored byte of one relayer in a file of makeFile, or of the name of a relayer with
// an ID.
func damage(t *testing.T, path, id string) {
	t.Helper()
	name := []byte(`"id":"` + id + `","name":"`)
	content := bytes.ReplaceAll(fileContent(t, path), name, append(name[:len(name)-1:len(name)-1], '\''))
	must(t, os.WriteFile(path, content, 0o600))
}

func TestCopy_BothDirections(t *testing.T) {
	t.Parallel()
	source, postgres, back := makeFile(t, 1234), newDatabase(t), filepath.Join(t.TempDir(), "back.db")
	for _, move := range []struct{ from, to string }{{source, postgres}, {postgres, back}} {
		expectOutput(t, "copied 1234 relayers\n", "copy", "--from", move.from, "--to", move.to)
		expectCopied(t, move.to, source)
	}
	expectOutput(t, "no damage found in 1234 relayers\n", "check", "--db", postgres)
}

// After an interruption or a kill, the same command resumes the copy.
func TestCopy_ResumesAfterInterruption(t *testing.T) {
	t.Parallel()
	source, url := makeFile(t, 10_000), newDatabase(t)
	copied := mustGet(database{"--db", url}.forCommand(t.Context()))(t)
	defer copied.Close()
	total := func() int { return mustGet(copied.List(t.Context(), relayer.StoreQuery{}))(t).Total }
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		command, log := program("", "copy", "--from", source, "--to", url), new(output)
		command.Stdout, command.Stderr = log, log
		before := total()
		must(t, command.Start())
		t.Cleanup(func() { _ = command.Process.Kill() })
		if !await(func() bool { return total() > before }) {
			t.Fatalf("nothing is copied: %s", log)
		}
		must(t, command.Process.Signal(signal))
		_ = command.Wait()
		if text := log.String(); signal == syscall.SIGINT && (command.ProcessState.ExitCode() != 1 || !strings.Contains(text, "relayerd: ")) {
			t.Errorf("exit status %d: %s", command.ProcessState.ExitCode(), text)
		}
		if held := total(); held == 10_000 {
			t.Error("all relayers are copied before the signal")
		}
		expectNoSecret(t, log.String())
	}
	runCommand(t, "copy", "--from", source, "--to", url)
	expectCopied(t, url, source)
}

// No command changes a file that a server has open, or leaves another file.
func TestCommands_FileInUse(t *testing.T) {
	t.Parallel()
	path, other, vacant := makeFile(t, 3), makeFile(t, 1), filepath.Join(t.TempDir(), "vacant.db")
	server := start(t, token, "--db", path)
	for _, args := range [][]string{
		{"check", "--db", path}, {"backup", "--db", path, "--to", vacant}, {"restore", "--from", path, "--db", vacant}, {"compact", "--db", path},
		{"copy", "--from", path, "--to", vacant}, {"copy", "--from", other, "--to", path}, {"history", "--db", path},
	} {
		expectFailure(t, "has it open: stop the server that has it open", args...)
	}
	server.stop()
	expectFiles(t, filepath.Dir(path), filepath.Base(path))
	expectFiles(t, filepath.Dir(vacant))
}

// A backup is a private file, and a restore has each relayer of it.
func TestBackup_Restore(t *testing.T) {
	t.Parallel()
	source, directory := makeFile(t, 30), t.TempDir()
	backup, restored := filepath.Join(directory, "backup.db"), filepath.Join(directory, "restored.db")
	for _, args := range [][]string{{"backup", "--db", source, "--to", backup}, {"restore", "--from", backup, "--db", restored}} {
		expectOutput(t, "copied 30 relayers\n", args...)
	}
	expectFiles(t, directory, "backup.db", "restored.db")
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	expectCopied(t, restored, source)
	expectOutput(t, "no damage found in 30 relayers\n", "check", "--db", restored)
}

// A damaged file is found, and neither changed nor copied.
func TestCommands_DamagedFile(t *testing.T) {
	t.Parallel()
	path, vacant := makeFile(t, 30), filepath.Join(t.TempDir(), "vacant.db")
	damage(t, path, "r-7")
	before := fileContent(t, path)
	expectFailure(t, "relayerd: --db: bolt: check "+path+": ", "check", "--db", path)
	expectFailure(t, "--db: bolt: check "+path, "backup", "--db", path, "--to", vacant)
	expectFailure(t, "--from: bolt: check "+path, "restore", "--from", path, "--db", vacant)
	if !bytes.Equal(fileContent(t, path), before) {
		t.Error("a command changed the file")
	}
	expectFiles(t, filepath.Dir(vacant))
}

// A damaged relayer does not take the others down, and a DELETE removes it.
func TestServe_DamagedRelayer(t *testing.T) {
	t.Parallel()
	path := makeFile(t, 3)
	damage(t, path, "r-1")
	server := start(t, token, "--db", path)
	server.expect("GET", collection+"/r-0", token, "", http.StatusOK)
	server.expect("GET", collection+"/r-1", token, "", http.StatusServiceUnavailable)
	server.expect("GET", collection, token, "", http.StatusServiceUnavailable)
	server.expect("GET", readinessPath, token, "", http.StatusOK)
	server.expect("DELETE", collection+"/r-1", token, "", http.StatusOK)
	server.expect("GET", collection, token, "", http.StatusOK)
	server.stop()
	expectOutput(t, "no damage found in 2 relayers\n", "check", "--db", path)
}

func TestCompact(t *testing.T) {
	t.Parallel()
	path := makeFile(t, 2000)
	store := mustGet(bolt.Open(t.Context(), path))(t)
	all := mustGet(store.List(t.Context(), relayer.StoreQuery{Limit: 2000}))(t)
	var deletes sync.WaitGroup
	for _, record := range all.Records[200:] {
		deletes.Go(func() { // concurrent deletes share a sync of the file
			if err := store.Delete(t.Context(), record.ID, record.Revision, nil); err != nil {
				t.Error(err)
			}
		})
	}
	deletes.Wait()
	must(t, store.Close())
	before, size := contentOf(t, path), len(fileContent(t, path))
	if output := runCommand(t, "compact", "--db", path); !regexp.MustCompile(`^compacted from \d+ to \d+ bytes\n$`).MatchString(output) {
		t.Errorf("output %q", output)
	}
	if after := len(fileContent(t, path)); after*3 > 2*size { // the history stays
		t.Errorf("the file has %d bytes, and had %d", after, size)
	}
	if after := contentOf(t, path); !reflect.DeepEqual(after, before) {
		t.Errorf("%d relayers differ from %d before", len(after), len(before))
	}
	expectFiles(t, filepath.Dir(path), filepath.Base(path))
}

// A token with the role backup copies the file of a running server, and does nothing else.
func TestBackup_OfServer(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	tokens := newTokens(t, "saver "+token+" backup", "ops "+oldToken+" write+engine", "both "+newToken+" read+backup")
	server := start(t, "", "--db", makeFile(t, 30), "--tokens-file", tokens, "--trusted-proxies", "127.0.0.1")
	for bearer, want := range map[string][3]int{
		token:    {http.StatusOK, http.StatusForbidden, http.StatusNotFound},
		newToken: {http.StatusOK, http.StatusOK, http.StatusOK},
		oldToken: {http.StatusNotFound, http.StatusOK, http.StatusOK},
		"wrong":  {http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		server.expect("GET", backupPath, bearer, "", want[0])
		server.expect("GET", collection, bearer, "", want[1])
		server.expect("GET", "/metrics", bearer, "", want[2])
	}
	path := filepath.Join(directory, "backup.db")
	expectOutput(t, "copied 30 relayers\n", "backup", "--server", server.url, "--to", path)
	if content := contentOf(t, path); len(content) != 30 {
		t.Errorf("the backup has %d relayers, want 30", len(content))
	}
	expectFailure(t, path+": file already exists: move it to another name first", "backup", "--server", server.url, "--to", path)
	expectFailureWith(t, "needs the role backup", oldToken, "backup", "--server", server.url, "--to", path+"2")
	expectFailureWith(t, "status 401", "wrong-"+token, "backup", "--server", server.url, "--to", path+"2")
	expectFiles(t, directory, "backup.db")
	_, _, err := server.try(http.DefaultClient, "GET", backupPath, token, "", "X-Forwarded-For", "198.51.100.1")
	must(t, err)
	server.stop()
	for _, address := range []string{"127.0.0.1", "198.51.100.1"} {
		if !strings.Contains(server.output.String(), `msg="backup sent" principal=saver address=`+address+"\n") {
			t.Errorf("the log does not name the backup for %s: %s", address, server.output)
		}
	}

	server = start(t, "", "--db", newDatabase(t), "--tokens-file", tokens)
	expectFailure(t, "with PostgreSQL, use pg_dump for a backup, and --db to remove a key", "backup", "--server", server.url, "--to", path+"2")
	server.stop()
}

// slowReader is a response whose client does not read before resume is closed.
type slowReader struct {
	*httptest.ResponseRecorder
	began  func()
	resume chan struct{}
}

func (r slowReader) Write(p []byte) (int, error) {
	r.began()
	<-r.resume
	return r.ResponseRecorder.Write(p)
}

// waiting is a context that calls began if a handler waits for it.
type waiting struct {
	context.Context
	began func()
}

func (w waiting) Done() <-chan struct{} {
	w.began()
	return w.Context.Done()
}

// newBackups returns a handler of backups and a function that sets the lines of its tokens file.
func newBackups(t *testing.T, logger *slog.Logger) (handler http.Handler, permit func(lines string)) {
	t.Helper()
	path := makeFile(t, 3)
	store := mustGet(bolt.Open(t.Context(), path))(t)
	t.Cleanup(func() { store.Close() })
	s := &server{config: config{database: path}, logger: logger, store: store, tokens: tokensFile{new(atomic.Pointer[tokenTable])}}
	return s.backups(http.NotFoundHandler()), func(lines string) { s.tokens.Store(new(mustGet(parseTokens(lines))(t))) }
}

// abortedDownload is a response whose client has closed the connection.
type abortedDownload struct {
	*httptest.ResponseRecorder
	began func()
}

func (d abortedDownload) Write([]byte) (int, error) {
	d.began()
	return 0, net.ErrClosed
}

// The log has who requests a backup before the first byte is sent, and then the result. HEAD sends none.
func TestBackup_Log(t *testing.T) {
	t.Parallel()
	log := new(output)
	lines := func() string {
		return regexp.MustCompile(`(?m)^time=\S+ | principal=saver address=192\.0\.2\.1`).ReplaceAllString(log.String(), "")
	}
	handler, permit := newBackups(t, slog.New(slog.NewTextHandler(log, nil)))
	permit("saver " + token + " backup\n")
	const requested, sent = "level=INFO msg=\"backup requested\"\n", "level=INFO msg=\"backup sent\"\n"
	want := ""
	for _, c := range []struct{ method, result string }{
		{http.MethodHead, ""},
		{http.MethodGet, sent},
		{http.MethodGet, "level=ERROR msg=\"backup failed\" error=\"use of closed network connection\"\n"},
	} {
		want += requested
		response := http.ResponseWriter(httptest.NewRecorder())
		if strings.Contains(c.result, "failed") {
			response = abortedDownload{httptest.NewRecorder(), func() {
				if got := lines(); got != want {
					t.Errorf("before the first byte the log is\n%s\nwant\n%s", got, want)
				}
			}}
		}
		request := httptest.NewRequest(c.method, backupPath, nil)
		request.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(response, request)
		want += c.result
	}
	if got := lines(); got != want || strings.Count(log.String(), " principal=saver address=192.0.2.1") != 5 {
		t.Errorf("the log is\n%s\nwant\n%s", log, want)
	}
}

// A token that is revoked while its request waits for another backup gets none.
func TestBackup_TokenRevoked(t *testing.T) {
	t.Parallel()
	handler, permit := newBackups(t, slog.New(slog.DiscardHandler))
	permit("saver " + token + " backup\n")
	request := httptest.NewRequest("GET", backupPath, nil)
	request.Header.Set("Authorization", "Bearer "+token)

	sending, noteSending := context.WithCancel(t.Context())
	queued, noteQueued := context.WithCancel(t.Context())
	first, second := slowReader{httptest.NewRecorder(), noteSending, make(chan struct{})}, httptest.NewRecorder()
	var requests sync.WaitGroup
	requests.Go(func() { handler.ServeHTTP(first, request) })
	<-sending.Done()
	requests.Go(func() { handler.ServeHTTP(second, request.WithContext(waiting{t.Context(), noteQueued})) })
	<-queued.Done()
	permit("ops " + newToken + " write\n")
	close(first.resume)
	requests.Wait()
	if first.Code != http.StatusOK || second.Code != http.StatusNotFound {
		t.Errorf("status %d, and %d after the token was revoked", first.Code, second.Code)
	}
}

// A redirect neither gets the token nor gives the backup, and a part is no backup.
func TestBackup_OtherServers(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	path := filepath.Join(t.TempDir(), "backup.db")
	for want, handler := range map[string]http.Handler{
		"status 302": http.RedirectHandler(other.URL, http.StatusFound),
		"is incomplete": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("part"))
		}),
	} {
		server := httptest.NewServer(handler)
		expectFailure(t, want, "backup", "--server", server.URL, "--to", path)
		server.Close()
	}
	if len(asked) > 0 {
		t.Errorf("the other server got %q", <-asked)
	}
	expectFiles(t, filepath.Dir(path))
}
