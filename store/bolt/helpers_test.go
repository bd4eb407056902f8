package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// open opens a store and closes it when the test ends.
func open(t testing.TB, path string, opts ...bolt.Option) *bolt.Store {
	t.Helper()
	store := mustGet(bolt.Open(t.Context(), path, opts...))(t)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustGet returns a function that returns the value, or fails the test with the error.
func mustGet[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// errorOf returns the error of a call that has another result too.
func errorOf[T any](_ T, err error) error { return err }

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

// openTemp opens a store in a new directory.
func openTemp(t testing.TB, opts ...bolt.Option) (*bolt.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayers.db")
	return open(t, path, opts...), path
}

func create(t *testing.T, store *bolt.Store, rec relayer.Record) func() error {
	return func() error { return errorOf(store.Create(t.Context(), rec)) }
}

// concurrently calls a function with the numbers from first up to last. A worker ends at its first
// error.
func concurrently(t testing.TB, workers, first, last int, call func(i int) error) {
	t.Helper()
	var done sync.WaitGroup
	for worker := range workers {
		done.Go(func() {
			for i := first + worker; i < last; i += workers {
				if err := call(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// createAll creates records from first up to last, concurrently.
func createAll(t testing.TB, store relayer.Store, first, last int) {
	t.Helper()
	concurrently(t, 64, first, last, func(i int) error { return errorOf(store.Create(t.Context(), numbered(i))) })
}

// deleteAll deletes the records concurrently.
func deleteAll(t testing.TB, store relayer.Store, recs []relayer.Record) {
	t.Helper()
	concurrently(t, 1024, 0, len(recs), func(i int) error {
		return store.Delete(t.Context(), recs[i].ID, recs[i].Revision, nil)
	})
}

func numbered(i int) relayer.Record {
	return relayer.Record{
		ID:       fmt.Sprintf("id-%07d", i),
		Claim:    fmt.Sprintf("claim-%07d", i),
		Document: bytes.Repeat([]byte("document"), 40),
		Private:  bytes.Repeat([]byte("private"), 20),
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o600))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	return mustGet(os.ReadFile(path))(t)
}

// flipBits restores one byte of a file except for the given bits, which it inverts.
func flipBits(t *testing.T, path string, whole []byte, at int, bits byte) {
	t.Helper()
	overwrite(t, path, int64(at), []byte{whole[at] ^ bits})
}

// edited returns the content of a file after a change through the engine.
func edited(t *testing.T, content []byte, change func(*bbolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edited.db")
	write(t, path, content)
	db := mustGet(bbolt.Open(path, 0o600, nil))(t)
	must(t, errors.Join(db.Update(change), db.Close()))
	return read(t, path)
}

func compact(t *testing.T, from, to string) {
	t.Helper()
	source := mustGet(bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true}))(t)
	target := mustGet(bbolt.Open(to, 0o600, nil))(t)
	must(t, errors.Join(bbolt.Compact(target, source, 1<<20), source.Close(), target.Close()))
}

// gate counts commits and blocks them until it is opened.
type gate struct {
	reached chan struct{}
	open    chan struct{}
	commits atomic.Int32
	held    chan error
}

func (g *gate) through(commit func() error) error {
	g.commits.Add(1)
	g.reached <- struct{}{}
	<-g.open
	return commit()
}

func newGate() *gate {
	return &gate{reached: make(chan struct{}, 1000), open: make(chan struct{})}
}

func openGated(t *testing.T) (*bolt.Store, *gate) {
	t.Helper()
	store, _ := openTemp(t)
	g := newGate()
	store.InterceptCommits(g.through)
	return store, g
}

// hold starts a write, whose commit holds the write lock until release.
func (g *gate) hold(write func() error) {
	g.held = inBackground(write)
	<-g.reached
}

// release opens the gate, and waits for the success of the held write and of others.
func (g *gate) release(t *testing.T, others ...chan error) {
	t.Helper()
	close(g.open)
	for _, result := range append(others, g.held) {
		must(t, <-result)
	}
}

// openHeld opens a store whose write lock is held by the create of a record.
func openHeld(t *testing.T, rec relayer.Record) (*bolt.Store, *gate) {
	t.Helper()
	store, g := openGated(t)
	g.hold(create(t, store, rec))
	return store, g
}

// wantResults compares the results of writes.
func wantResults(t *testing.T, results []chan error, wants ...error) {
	t.Helper()
	for i, want := range wants {
		if err := <-results[i]; !errors.Is(err, want) {
			t.Errorf("write %d: error is %v, want %v", i, err, want)
		}
	}
}

// countCommits counts the commits of a store from now on.
func countCommits(store *bolt.Store) *atomic.Int32 {
	var commits atomic.Int32
	store.InterceptCommits(func(commit func() error) error {
		commits.Add(1)
		return commit()
	})
	return &commits
}

// inBackground runs a function and returns its error in a channel.
func inBackground(do func() error) chan error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return done
}

// enqueue starts writes and returns when they wait in the queue. Something else must hold the
// write lock. Each channel receives the result of one write.
func enqueue(t *testing.T, store *bolt.Store, writes ...func() error) (results []chan error) {
	t.Helper()
	before := store.Waiting()
	for i, run := range writes {
		results = append(results, inBackground(run))
		for store.Waiting() < before+i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	return results
}

func wantSound(t *testing.T, store *bolt.Store) {
	t.Helper()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantIDs(t *testing.T, store relayer.Store, ids []string) {
	t.Helper()
	recs, total, err := list(t.Context(), store, page(0, len(ids)+1))
	if err != nil || total != len(ids) || len(recs) != len(ids) {
		t.Errorf("%d records, total %d, want %d; error %v", len(recs), total, len(ids), err)
		return
	}
	for i, id := range ids {
		if recs[i].ID != id {
			t.Errorf("record %d is %q, want %q", i, recs[i].ID, id)
		}
	}
}

// wantNoOtherFiles fails if the directory of the file holds another one.
func wantNoOtherFiles(t *testing.T, path string) {
	t.Helper()
	entries := mustGet(os.ReadDir(filepath.Dir(path)))(t)
	for _, entry := range entries {
		if entry.Name() != filepath.Base(path) {
			t.Errorf("%s was left", entry.Name())
		}
	}
}

var errDisk = errors.New("the disk is on fire")

// failCommit makes one commit of a store fail, counted from 1.
func failCommit(store *bolt.Store, which int, fail func(commit func() error) error) {
	commits := 0
	store.InterceptCommits(func(commit func() error) error {
		if commits++; commits == which {
			return fail(commit)
		}
		return commit()
	})
}

func failSync(commit func() error) error { return errors.Join(commit(), errDisk) }

// wholeFile returns the bytes of a file with pages of every kind, none of which is free.
func wholeFile(t *testing.T) []byte {
	t.Helper()
	grown, path := filepath.Join(t.TempDir(), "grown.db"), filepath.Join(t.TempDir(), "whole.db")
	store := open(t, grown)
	for first := 0; first < 300; first += 10 {
		records := make([]relayer.Record, 10)
		for i := range records {
			records[i] = numbered(first + i)
			records[i].Revision = uint64(1 + first + i)
		}
		must(t, store.Import(t.Context(), records))
	}
	must(t, store.Close())
	compact(t, grown, path)
	return read(t, path)
}

// pausingContext blocks the second call of Err, so that a check stops in the middle.
type pausingContext struct {
	context.Context
	asked   int
	reached chan struct{}
	open    chan struct{}
}

func (p *pausingContext) Err() error {
	if p.asked++; p.asked == 2 {
		p.reached <- struct{}{}
		<-p.open
	}
	return p.Context.Err()
}

func newPausingContext(t *testing.T) *pausingContext {
	return &pausingContext{Context: t.Context(), reached: make(chan struct{}, 1), open: make(chan struct{})}
}

func wantCorrupt(t *testing.T, call string, err error, part string) {
	t.Helper()
	if !errors.Is(err, relayer.ErrCorrupt) || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: error is %v, want %v with %s", call, err, relayer.ErrCorrupt, part)
	}
	if err != nil && strings.Contains(err.Error(), "gas_price_cap") {
		t.Errorf("%s: error %q quotes the record", call, err)
	}
}

// wantRemedy fails unless the error says once what to do about damage.
func wantRemedy(t *testing.T, err error) {
	t.Helper()
	const remedy = "restore the file from a backup"
	if text := err.Error(); strings.Count(text, remedy) != 1 || !strings.HasSuffix(text, remedy) {
		t.Errorf("error %q does not end with %q, said once", text, remedy)
	}
}

func overwrite(t *testing.T, path string, at int64, content []byte) {
	t.Helper()
	file := mustGet(os.OpenFile(path, os.O_RDWR, 0))(t)
	_, err := file.WriteAt(content, at)
	must(t, errors.Join(err, file.Close()))
}

// corruptibleFile returns a file with trees of several levels.
func corruptibleFile(t *testing.T) []byte {
	t.Helper()
	store, path := openTemp(t)
	records := make([]relayer.Record, corruptibleRecords)
	for i := range records {
		records[i] = versionedRecord(i, 0)
		records[i].Revision = uint64(i + 1)
	}
	must(t, errors.Join(store.Import(t.Context(), records), store.Close()))
	return read(t, path)
}

const corruptibleRecords = 1000

// versionedRecord has content that names the record and its version, so that a
// reader recognizes everything else as wrong.
func versionedRecord(i, version int) relayer.Record {
	document := fmt.Sprintf(`{"id":"id-%07d","version":%d,"filler":"%s"}`, i, version, strings.Repeat(strconv.Itoa(i%10), 300))
	return relayer.Record{ID: fmt.Sprintf("id-%07d", i), Claim: fmt.Sprintf("claim-%07d", i), Document: []byte(document), Private: []byte("{}")}
}

// list returns the records of a page and the total.
func list(ctx context.Context, store relayer.Store, query relayer.StoreQuery) ([]relayer.Record, int, error) {
	found, err := store.List(ctx, query)
	return found.Records, found.Total, err
}

func page(offset, limit int) relayer.StoreQuery {
	return relayer.StoreQuery{Offset: offset, Limit: limit}
}
