package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/storetest"
)

// Rejected writes share a batch with others. Each gets its own result, and later writes of
// the batch see earlier ones.
func TestGroupCommit_RejectedWrites(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "stored", Claim: "held"})
	update := func(rec relayer.Record) func() error {
		return func() error { return errorOf(store.Update(t.Context(), rec)) }
	}
	results := enqueue(t, store,
		create(t, store, relayer.Record{ID: "stored"}),
		create(t, store, relayer.Record{ID: "a", Claim: "held"}),
		create(t, store, relayer.Record{ID: "a", Claim: "new"}),
		create(t, store, relayer.Record{ID: "a"}),
		create(t, store, relayer.Record{ID: "b", Claim: "new"}),
		update(relayer.Record{ID: "stored", Revision: 1, Claim: "moved"}),
		update(relayer.Record{ID: "stored", Revision: 1}),
		create(t, store, relayer.Record{ID: "b", Claim: "held"}),
		func() error { return store.Delete(t.Context(), "missing", 1, nil) },
		func() error { return store.Delete(t.Context(), "b", 4, nil) },
		create(t, store, relayer.Record{ID: "b", Claim: "held"}),
	)
	g.release(t)
	wantResults(t, results, relayer.ErrExists, relayer.ErrClaimed, nil, relayer.ErrExists, relayer.ErrClaimed, nil,
		relayer.ErrConflict, nil, relayer.ErrNotFound, nil, nil)
	recs, total, err := list(t.Context(), store, page(0, 10))
	if err != nil || total != 3 || len(recs) != 3 {
		t.Fatalf("%d records, total %d, error %v", len(recs), total, err)
	}
	for i, want := range []string{"stored moved", "a new", "b held"} {
		if got := recs[i].ID + " " + recs[i].Claim; got != want {
			t.Errorf("record %d is %q, want %q", i, got, want)
		}
	}
	wantSound(t, store)
}

// A write that waits alone is a commit, and a rejected one needs none.
func TestGroupCommit_LoneWrites(t *testing.T) {
	store, _ := openTemp(t)
	commits := countCommits(store)
	for i := range 10 {
		must(t, create(t, store, relayer.Record{ID: fmt.Sprint(i)})())
		_ = create(t, store, relayer.Record{ID: "0"})()
		_ = store.Delete(t.Context(), "missing", 1, nil)
	}
	if commits.Load() != 10 {
		t.Errorf("10 creates, one after the other, took %d commits", commits.Load())
	}
}

func TestWrite_CanceledWhileQueued(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "first"})
	wantCancelable(t, createLate(store))
	g.release(t)
	wantNotCreated(t, store)
}

// Once its commit has begun, a write returns its real result.
func TestWrite_CanceledDuringCommit(t *testing.T) {
	store, g := openGated(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := inBackground(func() error { return errorOf(store.Create(ctx, relayer.Record{ID: "one"})) })
	<-g.reached
	cancel()
	select {
	case err := <-result:
		t.Fatalf("returned before the commit was done: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(g.open)
	must(t, <-result) // it was committed
	must(t, errorOf(store.Get(t.Context(), "one")))
}

func TestClose_AcceptedWrites(t *testing.T) {
	store, path := openTemp(t)
	g := newGate()
	store.InterceptCommits(g.through)
	g.hold(create(t, store, relayer.Record{ID: "first"}))
	results := enqueue(t, store, create(t, store, relayer.Record{ID: "second"}), create(t, store, relayer.Record{ID: "third"}))
	closed := make(chan error, 2)
	for range 2 {
		go func() { closed <- store.Close() }()
	}
	for {
		// The queue refuses from the moment that Close has begun.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := store.Create(ctx, relayer.Record{ID: "late"})
		cancel()
		if errors.Is(err, relayer.ErrUnavailable) {
			break
		}
	}
	g.release(t, results...)
	for range 2 {
		must(t, <-closed)
	}
	store = open(t, path)
	if _, total, err := list(t.Context(), store, page(0, 0)); err != nil || total != 3 {
		t.Errorf("total is %d, want 3; error %v", total, err)
	}
	wantSound(t, store)
}

// slowContext blocks in Done: its write is in the queue and does not wait for the lock yet.
type slowContext struct {
	context.Context
	reached, open chan struct{}
}

func (c slowContext) Done() <-chan struct{} {
	c.reached <- struct{}{}
	<-c.open
	return c.Context.Done()
}

// Close commits an accepted write whose caller is not scheduled.
func TestClose_WriteOfSlowCaller(t *testing.T) {
	store, path := openTemp(t)
	ctx := slowContext{t.Context(), make(chan struct{}, 10), make(chan struct{})}
	result := inBackground(func() error { return errorOf(store.Create(ctx, relayer.Record{ID: "accepted"})) })
	<-ctx.reached
	must(t, store.Close())
	close(ctx.open)
	must(t, <-result)
	store = open(t, path)
	wantIDs(t, store, []string{"accepted"})
}

// After a burst of writes, the store holds their bytes once.
func TestGroupCommit_MemoryAfterBurst(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "first"})
	before := heapInUse()
	const writes, size = 64, 1 << 20
	var burst []func() error
	for i := range writes {
		burst = append(burst, func() error {
			return errorOf(store.Create(t.Context(), relayer.Record{ID: fmt.Sprint(i), Document: make([]byte, size)}))
		})
	}
	results := enqueue(t, store, burst...)
	g.release(t, results...)
	if grown := heapInUse() - before; grown > writes*size*5/4 {
		t.Errorf("%d bytes are held after a burst of %d", grown, writes*size)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestWrite_Limits(t *testing.T) {
	store, _ := openTemp(t)
	for name, rec := range map[string]relayer.Record{"no id": {}, "long claim": {ID: "one", Claim: strings.Repeat("c", limits.Claim+1)}} {
		_, updateErr := store.Update(t.Context(), rec)
		for call, err := range map[string]error{"Create": create(t, store, rec)(), "Update": updateErr} {
			if !errors.Is(err, relayer.ErrInvalid) {
				t.Errorf("%s with %s: error is %v", call, name, err)
			}
		}
	}
}

// A write to a file that is no longer at its path would be lost at the next
// start.
func TestWrite_FileNotAtItsPath(t *testing.T) {
	tests := map[string]struct {
		move func(path string) error
		want string
	}{
		"deleted": {os.Remove, "the file was deleted or renamed: restore it at its path or restart"},
		"renamed": {func(path string) error { return os.Rename(path, path+".old") }, "the file was deleted or renamed: restore it at its path or restart"},
		"replaced": {func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		}, "another file is at the path: restore the original file or restart"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store, path := openTemp(t)
			must(t, create(t, store, relayer.Record{ID: "before"})())
			must(t, store.Ready(t.Context()))
			must(t, test.move(path))
			for call, err := range map[string]error{
				"Create": create(t, store, relayer.Record{ID: "after"})(),
				"Delete": store.Delete(t.Context(), "before", 1, nil),
				"Import": store.Import(t.Context(), []relayer.Record{{ID: "imported", Revision: 7}}),
				"Ready":  store.Ready(t.Context()),
			} {
				if !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: error is %v, want one that says %q", call, err, test.want)
				}
			}
			wantIDs(t, store, []string{"before"})
			if name == "renamed" {
				must(t, os.Rename(path+".old", path))
				must(t, create(t, store, relayer.Record{ID: "after"})()) // with the file back at its path
			}
		})
	}
}

func TestWrite_CanceledDuringCheck(t *testing.T) {
	store, _ := openTemp(t)
	must(t, create(t, store, relayer.Record{ID: "before"})())
	ctx := newPausingContext(t)
	checked := inBackground(func() error { return store.Check(ctx) })
	<-ctx.reached
	wantCancelable(t, createLate(store))
	close(ctx.open)
	must(t, <-checked)
	wantNotCreated(t, store)
}

// wantCancelable fails unless a call returns as soon as its context ends. The call must have to wait.
func wantCancelable(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	result := inBackground(func() error { return call(ctx) })
	select {
	case err := <-result:
		wantError(t, err, context.DeadlineExceeded)
	case <-time.After(5 * time.Second):
		t.Error("the call still waits")
	}
}

func createLate(store *bolt.Store) func(ctx context.Context) error {
	return func(ctx context.Context) error { return errorOf(store.Create(ctx, relayer.Record{ID: "late"})) }
}

func wantNotCreated(t *testing.T, store *bolt.Store) {
	t.Helper()
	must(t, create(t, store, relayer.Record{ID: "after"})())
	wantError(t, errorOf(store.Get(t.Context(), "late")), relayer.ErrNotFound)
}

// A page whose damaged header counts two billion overflow pages can make the engine run
// without end when a write frees it, and one more than it has can make it free a page of another
// part of the tree.
func TestWrite_DamagedPages(t *testing.T) {
	whole := wholeFile(t)
	leaf := bytes.Index(whole, numbered(0).Document) / os.Getpagesize() * os.Getpagesize()
	branch := pageOfKind(t, whole, pageKinds["branch"])
	for name, flip := range map[string]struct {
		at   int
		bits byte
	}{"overflow of a leaf": {leaf + 15, 0x80}, "one more page": {leaf + 12, 1}, "overflow of a branch": {branch + 14, 0x80}} {
		t.Run(name, func(t *testing.T) {
			path := writeTemp(t, whole)
			store := open(t, path)
			rec := mustGet(store.Get(t.Context(), numbered(0).ID))(t)
			flipBits(t, path, whole, flip.at, flip.bits)
			for range 2 {
				if _, err := store.Update(t.Context(), rec); !errors.Is(err, relayer.ErrCorrupt) || !errors.Is(err, relayer.ErrUnavailable) {
					t.Fatalf("Update: error is %v", err)
				}
			}
			wantError(t, store.Check(t.Context()), relayer.ErrCorrupt)
			must(t, errorOf(store.Get(t.Context(), numbered(7).ID)))
			flipBits(t, path, whole, flip.at, 0)
			wantSound(t, store)
			must(t, errorOf(store.Update(t.Context(), rec))) // of sound pages
		})
	}
}

// The file gets the content of another store between two writes.
func TestWrite_OtherContent(t *testing.T) {
	for commits := range 4 {
		store, path := openTemp(t)
		must(t, create(t, store, relayer.Record{ID: "before", Document: make([]byte, 12_000)})())
		whole := read(t, path)
		overwrite(t, path, 0, otherContent(t, commits))
		if err := store.Ready(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("%d commits: Ready: error is %v, want %v", commits, err, relayer.ErrCorrupt)
		}
		wantCreateUnavailable(t, store)
		wantCreateUnavailable(t, store)
		wantIDs(t, store, []string{"before"})
		// The right content is back.
		overwrite(t, path, 0, whole)
		wantSound(t, store)
		must(t, create(t, store, relayer.Record{ID: "after"})())
	}
}

func TestStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T) func(t *testing.T) relayer.Store {
		path := filepath.Join(t.TempDir(), "relayers.db")
		return func(t *testing.T) relayer.Store { return open(t, path) }
	})
}

func importAll(t *testing.T, store *bolt.Store, records []relayer.Record) func() error {
	return func() error { return store.Import(t.Context(), records) }
}

// numberedRecords returns records to import. Each has a claim.
func numberedRecords(prefix string, n, size int) []relayer.Record {
	records := make([]relayer.Record, n)
	for i := range records {
		id := fmt.Sprintf("%s-%d", prefix, i)
		records[i] = relayer.Record{ID: id, Revision: uint64(n - i), Claim: "claim of " + id, Document: make([]byte, size)}
	}
	return records
}

func TestImport_OneCommit(t *testing.T) {
	store, path := openTemp(t)
	commits := countCommits(store)
	records := numberedRecords("m", 2500, 1000)
	must(t, importAll(t, store, records)())
	if commits.Load() != 1 {
		t.Errorf("an import took %d commits", commits.Load())
	}
	var ids []string
	for _, rec := range records {
		ids = append(ids, rec.ID)
	}
	wantRecovered(t, store, path, ids...)
}

// An empty import and a rejected one do not commit.
func TestImport_NothingToCommit(t *testing.T) {
	store, _ := openTemp(t)
	store.InterceptCommits(func(func() error) error {
		t.Error("a commit without changes")
		return errDisk
	})
	must(t, importAll(t, store, nil)())
	twice := append(numberedRecords("m", 3, 10), numberedRecords("m", 1, 10)...)
	wantError(t, importAll(t, store, twice)(), relayer.ErrExists)
	wantSound(t, store)
}

// Imports share a commit with other writes. A rejected import does not affect the writes
// after it.
func TestImport_InBatch(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "stored", Claim: "held"})
	taken, claimed := numberedRecords("m", 5, 10), numberedRecords("m", 5, 10)
	taken[3].ID, claimed[4].Claim = "stored", "held"
	results := enqueue(t, store,
		create(t, store, relayer.Record{ID: "a"}),
		importAll(t, store, taken),
		importAll(t, store, claimed),
		create(t, store, relayer.Record{ID: "m-1", Claim: "claim of m-2"}),
		importAll(t, store, numberedRecords("m", 5, 10)),
		func() error { return store.Delete(t.Context(), "m-1", 3, nil) },
		importAll(t, store, numberedRecords("m", 3, 10)),
		create(t, store, relayer.Record{ID: "m-1"}),
		create(t, store, relayer.Record{ID: "b", Claim: "claim of m-0"}),
	)
	g.release(t)
	wantResults(t, results, nil, relayer.ErrExists, relayer.ErrClaimed, nil, relayer.ErrExists, nil, nil, relayer.ErrExists, relayer.ErrClaimed)
	if commits := g.commits.Load(); commits != 2 {
		t.Errorf("%d commits, want 2", commits)
	}
	wantIDs(t, store, []string{"stored", "a", "m-0", "m-1", "m-2"})
	wantSound(t, store)
}

// Writes and imports count with all their bytes for the limit of a batch.
func TestImport_LargeBatch(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "first"})
	results := enqueue(t, store,
		create(t, store, relayer.Record{ID: "second"}),
		importAll(t, store, numberedRecords("a", 9, 1<<20)),
		create(t, store, relayer.Record{ID: "third"}),
		importAll(t, store, numberedRecords("b", 5, 1<<20)),
		create(t, store, relayer.Record{ID: "large", Document: make([]byte, 5<<20)}),
	)
	g.release(t, results...)
	if commits := g.commits.Load(); commits != 5 {
		t.Errorf("the writes after the first took %d commits, want 4", commits-1)
	}
	wantSound(t, store)
}
