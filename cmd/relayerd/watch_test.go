package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const changesPath = collection + ":watch"

// call sends a request to a server that may be killed meanwhile. The headers are pairs of
// names and values.
func call(ctx context.Context, server *process, method, path, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, server.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(request)
}

func revisionOf(tag string) uint64 {
	revision, _ := strconv.ParseUint(strings.Trim(tag, `"`), 10, 64)
	return revision
}

// seenChange identifies a change. A delete has the revision before it.
type seenChange struct {
	kind, id string
	revision uint64
}

// follower is a client of the change feed that keeps the revision of each relayer. It
// reconnects to the current server after every lost connection, with the id of the last
// event.
type follower struct {
	server    atomic.Pointer[process]
	connected atomic.Pointer[process] // the last server that accepted a connection

	mu       sync.Mutex
	known    map[string]uint64
	lastID   string
	seen     map[seenChange]int
	received int       // changes
	listed   time.Time // when the last list after a resync had been read
	resyncs  int
	problems []error
}

// startFollower follows the server until the test ends.
func startFollower(t *testing.T, server *process) *follower {
	t.Helper()
	f := &follower{known: make(map[string]uint64), seen: make(map[seenChange]int)}
	f.server.Store(server)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			f.connect(ctx)
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := errors.Join(f.problems...); err != nil {
			t.Error(err)
		}
	})
	return f
}

// connect follows the server until the connection ends.
func (f *follower) connect(ctx context.Context) {
	server := f.server.Load()
	var headers []string
	if f.lastID != "" {
		headers = []string{"Last-Event-ID", f.lastID}
	}
	response, err := call(ctx, server, "GET", changesPath, "", headers...)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return // it stops, or its database is not reachable
	}
	f.connected.Store(server)
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	fields := make(map[string]string)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name != "":
			fields[name] = value
		case fields["event"] == "resync":
			if f.list(ctx, server) != nil {
				return
			}
			clear(fields)
		default:
			if fields["event"] != "heartbeat" {
				f.apply(fields)
			}
			clear(fields)
		}
	}
}

// list replaces what is known by a page with all relayers.
func (f *follower) list(ctx context.Context, server *process) error {
	known, err := listRevisions(ctx, server)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resyncs++
	if err == nil {
		f.known, f.listed = known, time.Now()
	}
	return err
}

// listRevisions reads a page with all relayers, and then the revision of each.
func listRevisions(ctx context.Context, server *process) (map[string]uint64, error) {
	response, err := call(ctx, server, "GET", collection+"?per_page=100", "")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var page struct{ Data []struct{ ID string } }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return nil, err
	}
	known := make(map[string]uint64)
	for _, r := range page.Data {
		one, err := call(ctx, server, "HEAD", collection+"/"+r.ID, "")
		if err != nil {
			return nil, err
		}
		one.Body.Close()
		if one.StatusCode == http.StatusOK {
			known[r.ID] = revisionOf(one.Header.Get("ETag"))
		}
	}
	return known, nil
}

func (f *follower) apply(fields map[string]string) {
	var data struct {
		ETag    string
		Relayer struct{ ID string }
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := json.Unmarshal([]byte(fields["data"]), &data); err != nil || fields["id"] == "" {
		f.problems = append(f.problems, fmt.Errorf("event %q, error %w", fields, err))
		return
	}
	id, revision := data.Relayer.ID, revisionOf(data.ETag)
	f.lastID = fields["id"]
	if fields["event"] == "deleted" {
		if revision < f.known[id] {
			f.received++
			return // the list was read after the relayer was created again
		}
		revision = f.known[id] // the writer does not know the revision of its delete
	}
	f.seen[seenChange{fields["event"], id, revision}]++
	f.received++
	switch {
	case fields["event"] == "deleted":
		delete(f.known, id)
	case revision > f.known[id]:
		f.known[id] = revision
	}
}

func (f *follower) countResyncs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resyncs
}

// awaitChanges waits until the follower has received more changes. Until the first one
// it has no id to resume from.
func (f *follower) awaitChanges(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.received
	}
	wanted := count() + more
	waitUntil(t, "the follower has received more changes", func() bool { return count() >= wanted })
}

// writer changes relayers of the current server until it is stopped. It records the
// writes that the server has acknowledged.
type writer struct {
	server       *atomic.Pointer[process]
	revisions    map[string]uint64 // missing: unknown
	acknowledged map[seenChange]time.Time
	random       *rand.Rand
}

// startWriter returns a function that stops the writer and returns it.
func startWriter(server *atomic.Pointer[process]) (stop func() *writer) {
	w := &writer{server: server, revisions: make(map[string]uint64), acknowledged: make(map[seenChange]time.Time), random: rand.New(rand.NewPCG(rand.Uint64(), 0))}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			w.write(i)
		}
	}()
	return func() *writer {
		cancel()
		<-done
		return w
	}
}

// write creates, patches or deletes one relayer. A request that fails may have changed
// it.
func (w *writer) write(i int) {
	id := fmt.Sprintf("r-%d", w.random.IntN(8))
	kind, method, path, body := "created", "POST", collection, fmt.Sprintf(`{"id":%q,"name":"%d","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`, id, i)
	before := w.revisions[id]
	switch {
	case before > 0 && i%4 == 0:
		kind, method, path, body = "deleted", "DELETE", collection+"/"+id, ""
	case before > 0:
		kind, method, path, body = "updated", "PATCH", collection+"/"+id, fmt.Sprintf(`{"name":"%d"}`, i)
	}
	begun := time.Now()
	response, err := call(context.Background(), w.server.Load(), method, path, body)
	if err != nil {
		delete(w.revisions, id)
		return
	}
	_, err = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	switch {
	case response.StatusCode == http.StatusConflict: // created by a request that failed
		w.revisions[id] = 1
	case response.StatusCode >= 300 || err != nil:
		delete(w.revisions, id)
	case kind == "deleted":
		delete(w.revisions, id)
		if before > 1 {
			w.acknowledged[seenChange{kind, id, before}] = begun
		}
	default:
		w.revisions[id] = revisionOf(response.Header.Get("ETag"))
		w.acknowledged[seenChange{kind, id, w.revisions[id]}] = begun
	}
}

// createEnd creates the last relayer.
func createEnd(t *testing.T, server *process) {
	t.Helper()
	if status, body := server.do("POST", collection, `{"id":"end","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`); status != http.StatusCreated {
		t.Fatalf("create returned %d: %s", status, body)
	}
}

// wantCaughtUp waits until the view of the follower equals the store, which has the last
// relayer. Then the follower has received every acknowledged write, except for those that
// began before its last list. After a list it may receive older changes again.
func (f *follower) wantCaughtUp(t *testing.T, server *process, w *writer) {
	t.Helper()
	stored, err := listRevisions(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	hasAll := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return maps.Equal(f.known, stored)
	}
	if !await(hasAll) {
		t.Errorf("the follower has %v, stored is %v", f.known, stored)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	missed := 0
	for change, begun := range w.acknowledged {
		switch count := f.seen[change]; {
		case count > 1:
			t.Errorf("%v was received %d times", change, count)
		case count == 0 && begun.After(f.listed):
			t.Errorf("%v was not received", change)
		case count == 0:
			missed++
		}
	}
	t.Logf("%d acknowledged writes, %d received changes, %d writes only in a list, %d resyncs", len(w.acknowledged), len(f.seen), missed, f.resyncs)
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 30 s", what)
}

// restartRepeatedly kills the server, or lets it drain, and starts another one while a
// follower and a writer use it.
func restartRepeatedly(t *testing.T, database string) *follower {
	t.Helper()
	args := []string{"--db", database, "--rate", "0"}
	server := start(t, token, args...)
	f := startFollower(t, server)
	waitUntil(t, "the first list is read", func() bool { return f.countResyncs() == 1 })
	stop := startWriter(&f.server)
	for round := range 6 {
		waitUntil(t, "the follower is connected", func() bool { return f.connected.Load() == server })
		f.awaitChanges(t, 20)
		if round%2 == 0 {
			server.stop() // fails if the open stream delays the shutdown
		} else {
			if err := server.command.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = server.command.Wait()
		}
		server = start(t, token, args...)
		f.server.Store(server)
	}
	f.awaitChanges(t, 20)
	w := stop()
	createEnd(t, server)
	f.wantCaughtUp(t, server, w)
	return f
}

// The feed of a bolt store is in memory: after a restart there is an explicit resync.
func TestWatch_ServerRestartsOnFile(t *testing.T) {
	t.Parallel()
	f := restartRepeatedly(t, filepath.Join(t.TempDir(), "relayers.db"))
	if resyncs := f.countResyncs(); resyncs < 7 {
		t.Errorf("%d resyncs, want one for each server", resyncs)
	}
}

// PostgreSQL keeps the changes: every one is received once, and there is no resync.
func TestWatch_ServerRestartsOnPostgres(t *testing.T) {
	t.Parallel()
	f := restartRepeatedly(t, location(t, startPostgres(t), "postgres"))
	if resyncs := f.countResyncs(); resyncs != 1 {
		t.Errorf("%d resyncs, want that of the first connection", resyncs)
	}
}

// A follower of one server receives the writes of the other, and resumes there.
func TestWatch_TwoServersOnPostgres(t *testing.T) {
	t.Parallel()
	database := location(t, startPostgres(t), "postgres")
	one := start(t, token, "--db", database, "--rate", "0")
	other := start(t, token, "--db", database, "--rate", "0")
	f := startFollower(t, one)
	waitUntil(t, "the first list is read", func() bool { return f.countResyncs() == 1 })
	var target atomic.Pointer[process]
	target.Store(other)
	stop := startWriter(&target)
	f.awaitChanges(t, 50)
	f.server.Store(other)
	one.stop()
	f.awaitChanges(t, 50)
	w := stop()
	createEnd(t, other)
	f.wantCaughtUp(t, other, w)
	if resyncs := f.countResyncs(); resyncs != 1 {
		t.Errorf("%d resyncs, want that of the first connection", resyncs)
	}
	other.stop()
}

func TestWatch_ReadToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	writeFiles(t, map[string][]byte{file: []byte("reader " + token + " read\n")})
	server := start(t, "", "--db", "memory", "--tokens-file", file)
	response, err := call(t.Context(), server, "GET", changesPath, "")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("watch with a read token returned %d", response.StatusCode)
	}
}
