package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/bolt"
)

func TestGroupCommit_SharedCommit(t *testing.T) {
	store, g := openGated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	var writes []func() error
	for i := range 50 {
		writes = append(writes, create(t, store, relayer.Record{ID: fmt.Sprint(i)}))
	}
	results := enqueue(t, store, writes...)
	close(g.open)
	for _, result := range append(results, first) {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
	if commits := g.commits.Load(); commits != 2 {
		t.Errorf("51 creates took %d commits, want 2", commits)
	}
}

func TestGroupCommit_LoneWrites(t *testing.T) {
	store, _ := openTemp(t)
	var commits atomic.Int32
	store.InterceptCommits(func(commit func() error) error {
		commits.Add(1)
		return commit()
	})
	for i := range 10 {
		if err := create(t, store, relayer.Record{ID: fmt.Sprint(i)})(); err != nil {
			t.Fatal(err)
		}
	}
	if commits.Load() != 10 {
		t.Errorf("10 creates, one after the other, took %d commits", commits.Load())
	}
}

// Rejected writes share a batch with others. Each gets its own result, and later writes of
// the batch see earlier ones.
func TestGroupCommit_RejectedWrites(t *testing.T) {
	store, g := openGated(t)
	first := make(chan error, 1)
	stored := relayer.Record{ID: "stored", Claim: "held"}
	go func() {
		var err error
		stored, err = store.Create(t.Context(), stored)
		first <- err
	}()
	<-g.reached
	update := func(rec relayer.Record) func() error {
		return func() error {
			_, err := store.Update(t.Context(), rec)
			return err
		}
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
	close(g.open)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	wants := []error{
		relayer.ErrExists, relayer.ErrClaimed, nil, relayer.ErrExists, relayer.ErrClaimed, nil,
		relayer.ErrConflict, nil, relayer.ErrNotFound, nil, nil,
	}
	for i, want := range wants {
		if err := <-results[i]; !errors.Is(err, want) {
			t.Errorf("write %d: error is %v, want %v", i, err, want)
		}
	}
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

// A rejected write needs no sync.
func TestGroupCommit_NothingToCommit(t *testing.T) {
	store, _ := openTemp(t)
	var commits atomic.Int32
	store.InterceptCommits(func(commit func() error) error {
		commits.Add(1)
		return commit()
	})
	for range 5 {
		_ = create(t, store, relayer.Record{ID: "one"})()
		_ = store.Delete(t.Context(), "missing", 1, nil)
	}
	if commits.Load() != 1 {
		t.Errorf("%d commits, want 1", commits.Load())
	}
}

func TestWrite_CanceledWhileQueued(t *testing.T) {
	store, g := openGated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	ctx, cancel := context.WithCancel(t.Context())
	results := enqueue(t, store, func() error {
		_, err := store.Create(ctx, relayer.Record{ID: "second"})
		return err
	})
	cancel()
	select {
	case err := <-results[0]:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want %v", err, context.Canceled)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the canceled write still waits")
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := create(t, store, relayer.Record{ID: "third"})(); err != nil {
		t.Error(err)
	}
	if _, err := store.Get(t.Context(), "second"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get of the canceled record: error is %v", err)
	}
}

// Once its commit has begun, a write returns its real result.
func TestWrite_CanceledDuringCommit(t *testing.T) {
	store, g := openGated(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := store.Create(ctx, relayer.Record{ID: "one"})
		result <- err
	}()
	<-g.reached
	cancel()
	select {
	case err := <-result:
		t.Fatalf("returned before the commit was done: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(g.open)
	if err := <-result; err != nil {
		t.Errorf("the write was committed, and its error is %v", err)
	}
	if _, err := store.Get(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

func TestClose_AcceptedWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	g := newGate()
	store.InterceptCommits(g.through)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
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
	close(g.open)
	for _, result := range append(results, first) {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
	store = open(t, path)
	defer store.Close()
	if _, total, err := list(t.Context(), store, page(0, 0)); err != nil || total != 3 {
		t.Errorf("total is %d, want 3; error %v", total, err)
	}
	wantSound(t, store)
}

// panicking is the handler of a logger that panics.
type panicking struct{ slog.Handler }

func (panicking) Handle(context.Context, slog.Record) error { panic("the logger of the host") }

func TestWrite_LoggerPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path, bolt.WithLogger(slog.New(panicking{slog.NewTextHandler(io.Discard, nil)})))
	defer store.Close()
	if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, 0, withNoise(read(t, path)))
	for range 2 {
		wantCreateUnavailable(t, store)
	}
	wantIDs(t, store, []string{"before"})
}

func TestOpen_LoggerPanics(t *testing.T) {
	path := flippedFile(t)
	store := open(t, path, bolt.WithLogger(slog.New(panicking{slog.NewTextHandler(io.Discard, nil)})))
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// panickingContext panics when the leader asks for its error.
type panickingContext struct {
	context.Context
	calls atomic.Int32
}

func (c *panickingContext) Err() error {
	if c.calls.Add(1) > 1 {
		panic("in a context")
	}
	return c.Context.Err()
}

// The writes of a batch have results if the context of one of them panics.
func TestWrite_ContextPanics(t *testing.T) {
	store, g := openGated(t)
	first := enqueueBehind(t, store, g,
		func() error {
			_, err := store.Create(&panickingContext{Context: t.Context()}, relayer.Record{ID: "panics"})
			return err
		},
		create(t, store, relayer.Record{ID: "second"}))
	close(g.open)
	if err := <-first[0]; err == nil {
		t.Error("the write whose context panics has no error")
	}
	if err := <-first[1]; err != nil {
		t.Error(err)
	}
	wantIDs(t, store, []string{"first", "second"})
}

// enqueueBehind enqueues writes while the commit of a first one is held up.
func enqueueBehind(t *testing.T, store *bolt.Store, g *gate, writes ...func() error) []chan error {
	t.Helper()
	go func() { _ = create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	return enqueue(t, store, writes...)
}

// If a batch panics while it is validated, its writes have results and later writes work.
func TestWrite_ValidationPanics(t *testing.T) {
	store, g := openGated(t)
	surviving := func(write func() error) func() error { // one of the callers is the leader
		return func() (err error) {
			defer func() {
				if cause := recover(); cause != nil {
					err = fmt.Errorf("%w: %v", relayer.ErrOutcomeUnknown, cause)
				}
			}()
			return write()
		}
	}
	results := enqueueBehind(t, store, g,
		surviving(create(t, store, relayer.Record{ID: "second"})),
		surviving(func() error { return store.Panic(t.Context()) }))
	close(g.open)
	for _, result := range results {
		if err := <-result; !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("error is %v, want %v", err, relayer.ErrOutcomeUnknown)
		}
	}
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Error(err)
	}
}

// A batch that is applied in part ends the writes of the process. The file has the batch.
func TestWrite_ApplyPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	func() {
		defer func() { _ = recover() }()
		_ = store.PanicInApply(t.Context(), relayer.Record{ID: "durable"})
		t.Error("applying did not panic")
	}()
	for range 2 {
		err := create(t, store, relayer.Record{ID: "refused"})()
		if !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "restart the process") {
			t.Errorf("error is %v, want %v with what to do", err, relayer.ErrUnavailable)
		}
	}
	_ = store.Close()
	store = open(t, path)
	defer store.Close()
	wantIDs(t, store, []string{"durable"})
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
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	ctx := slowContext{t.Context(), make(chan struct{}, 10), make(chan struct{})}
	result := make(chan error, 1)
	go func() {
		_, err := store.Create(ctx, relayer.Record{ID: "accepted"})
		result <- err
	}()
	<-ctx.reached
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	close(ctx.open)
	if err := <-result; err != nil {
		t.Error(err)
	}
	store = open(t, path)
	defer store.Close()
	wantIDs(t, store, []string{"accepted"})
}

func TestClose_UnderLoad(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "relayers.db")
		store := open(t, path)
		var made atomic.Int64
		var done sync.WaitGroup
		for worker := range 16 {
			done.Go(func() {
				for i := 0; ; i++ {
					_, err := store.Create(t.Context(), relayer.Record{ID: fmt.Sprintf("%d-%d", worker, i)})
					if errors.Is(err, relayer.ErrUnavailable) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					made.Add(1)
					if _, _, err := list(t.Context(), store, page(i, 5)); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(20 * time.Millisecond)
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		done.Wait()
		store = open(t, path)
		if _, total, err := list(t.Context(), store, page(0, 0)); err != nil || int64(total) != made.Load() {
			t.Errorf("%d records, %d acknowledged, error %v", total, made.Load(), err)
		}
		wantSound(t, store)
		_ = store.Close()
	}
}

// The queue holds more bytes than one commit takes.
func TestGroupCommit_LargeBatch(t *testing.T) {
	store, g := openGated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	large := make([]byte, 3<<20)
	var writes []func() error
	for i := range 5 {
		writes = append(writes, create(t, store, relayer.Record{ID: fmt.Sprint(i), Document: large}))
	}
	results := enqueue(t, store, writes...)
	close(g.open)
	for _, result := range append(results, first) {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
	if commits := g.commits.Load(); commits != 4 {
		t.Errorf("5 creates of 3 MiB after the first took %d commits, want 3", commits-1)
	}
}

// After a burst of writes, the store holds their bytes once.
func TestGroupCommit_MemoryAfterBurst(t *testing.T) {
	store, g := openGated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	before := heapInUse()
	const writes, size = 64, 1 << 20
	var burst []func() error
	for i := range writes {
		burst = append(burst, func() error {
			_, err := store.Create(t.Context(), relayer.Record{ID: fmt.Sprint(i), Document: make([]byte, size)})
			return err
		})
	}
	results := enqueue(t, store, burst...)
	close(g.open)
	for _, result := range append(results, first) {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
	if grown := heapInUse() - before; grown > writes*size*5/4 {
		t.Errorf("%d bytes are held after a burst of %d", grown, writes*size)
	}
}

// Records that were read from the file share allocations.
func TestDelete_MemoryOfReadRecords(t *testing.T) {
	store, path := openTemp(t)
	const count, size = 1000, 64 << 10
	for i := range count {
		rec := relayer.Record{ID: fmt.Sprint(i), Document: make([]byte, size), Revision: uint64(1 + i)}
		if err := store.Import(t.Context(), []relayer.Record{rec}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = open(t, path)
	before := heapInUse()
	var deleting sync.WaitGroup
	for i := 1; i < count; i++ {
		deleting.Go(func() {
			if err := store.Delete(t.Context(), fmt.Sprint(i), uint64(1+i), nil); err != nil {
				t.Error(err)
			}
		})
	}
	deleting.Wait()
	// A part stays for those who watch.
	if freed := before - heapInUse(); freed < count*size/2 {
		t.Errorf("%d bytes of %d are freed", freed, count*size)
	}
	if _, err := store.Get(t.Context(), "0"); err != nil {
		t.Error(err)
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
	for name, rec := range map[string]relayer.Record{
		"no id":      {},
		"long id":    {ID: strings.Repeat("i", limits.ID+1)},
		"long claim": {ID: "one", Claim: strings.Repeat("c", limits.Claim+1)},
	} {
		if _, err := store.Create(t.Context(), rec); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("Create with %s: error is %v", name, err)
		}
		if _, err := store.Update(t.Context(), rec); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("Update with %s: error is %v", name, err)
		}
		records := numberedRecords("m", 3, 10)
		rec.Revision, records[1] = records[1].Revision, rec
		wantNotImported(t, store, name, records)
	}
	records := numberedRecords("m", 3, 10)
	records[1].Revision = 0
	wantNotImported(t, store, "no revision", records)
	for _, id := range []string{"", strings.Repeat("i", 100_000)} {
		if _, err := store.Get(t.Context(), id); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("Get: error is %v", err)
		}
		if err := store.Delete(t.Context(), id, 1, nil); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("Delete: error is %v", err)
		}
	}
}

func wantNotImported(t *testing.T, store *bolt.Store, name string, records []relayer.Record) {
	t.Helper()
	if _, ok := errors.AsType[*relayer.ValidationError](store.Import(t.Context(), records)); !ok {
		t.Errorf("Import with %s has no error of a field", name)
	}
	wantIDs(t, store, nil)
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
			if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
				t.Fatal(err)
			}
			if err := store.Ready(t.Context()); err != nil {
				t.Errorf("Ready before: %v", err)
			}
			if err := test.move(path); err != nil {
				t.Fatal(err)
			}
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
		})
	}
}

func TestWrite_CanceledDuringCheck(t *testing.T) {
	store, _ := openTemp(t)
	if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
		t.Fatal(err)
	}
	ctx := newPausingContext(t)
	checked := make(chan error, 1)
	go func() { checked <- store.Check(ctx) }()
	<-ctx.reached
	wantCancelable(t, store)
	close(ctx.open)
	if err := <-checked; err != nil {
		t.Error(err)
	}
	wantNotCreated(t, store)
}

// wantCancelable fails unless a write returns as soon as its context ends. The write must
// have to wait.
func wantCancelable(t *testing.T, store *bolt.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := store.Create(ctx, relayer.Record{ID: "late"})
		result <- err
	}()
	select {
	case err := <-result:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want %v", err, context.DeadlineExceeded)
		}
	case <-time.After(5 * time.Second):
		t.Error("the write still waits")
	}
}

func wantNotCreated(t *testing.T, store *bolt.Store) {
	t.Helper()
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), "late"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get of the canceled record: error is %v, want %v", err, relayer.ErrNotFound)
	}
}

// A page whose damaged header counts two billion overflow pages can make the engine run
// without end when a write frees it.
func TestWrite_DamagedPages(t *testing.T) {
	whole := wholeFile(t)
	path := writeTemp(t, whole)
	records := bytes.Index(whole, numbered(0).Document) / os.Getpagesize() * os.Getpagesize()
	store := open(t, path)
	defer store.Close()
	flipBits(t, path, whole, records+15, 0x80)
	if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
		t.Fatalf("Check: error is %v, want %v", err, relayer.ErrCorrupt)
	}
	for range 2 {
		err := create(t, store, relayer.Record{ID: "new"})()
		if !errors.Is(err, relayer.ErrCorrupt) || !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("Create: error is %v", err)
		}
	}
	if _, err := store.Get(t.Context(), numbered(7).ID); err != nil {
		t.Errorf("Get: %v", err)
	}
	flipBits(t, path, whole, records+15, 0)
	wantSound(t, store)
	if err := create(t, store, relayer.Record{ID: "new"})(); err != nil {
		t.Errorf("Create to sound pages: %v", err)
	}
}

func TestWrite_FileReplacedAndRestored(t *testing.T) {
	store, path, repair := failedRecovery(t)
	repair()
	aside := path + ".aside"
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	wantCreateUnavailable(t, store)
	createOtherStore(t, path)
	wantCreateUnavailable(t, store)
	wantIDs(t, store, []string{"before"})
	wantOtherStore(t, path)
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Errorf("Create with the file back at its path: %v", err)
	}
	wantIDs(t, store, []string{"before", "unknown", "after"})
}

// The file gets the content of another store between two writes.
func TestWrite_OtherContent(t *testing.T) {
	for commits := range 4 {
		path := filepath.Join(t.TempDir(), "relayers.db")
		store := open(t, path)
		if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
			t.Fatal(err)
		}
		overwrite(t, path, 0, otherContent(t, commits))
		isSameHeader := commits == 1
		if err := store.Ready(t.Context()); !isSameHeader && !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("%d commits: Ready: error is %v, want %v", commits, err, relayer.ErrCorrupt)
		}
		wantCreateUnavailable(t, store)
		wantCreateUnavailable(t, store)
		wantIDs(t, store, []string{"before"})
		_ = store.Close()
	}
}
