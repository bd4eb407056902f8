package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// gate holds commits back until it is opened, and counts them.
type gate struct {
	reached chan struct{}
	open    chan struct{}
	commits atomic.Int32
}

func newGate() *gate {
	return &gate{reached: make(chan struct{}, 1000), open: make(chan struct{})}
}

func (g *gate) through(commit func() error) error {
	g.commits.Add(1)
	g.reached <- struct{}{}
	<-g.open
	return commit()
}

func gated(t *testing.T) (*bolt.Store, *gate) {
	t.Helper()
	store, _ := opened(t)
	g := newGate()
	store.InterceptCommits(g.through)
	return store, g
}

// behind starts writes and returns once they wait behind the commit at the gate.
func behind(t *testing.T, store *bolt.Store, writes ...func() error) (answers []chan error) {
	t.Helper()
	before := store.Waiting()
	for i, run := range writes {
		answer := make(chan error, 1)
		go func() { answer <- run() }()
		answers = append(answers, answer)
		for store.Waiting() < before+i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	return answers
}

func create(t *testing.T, store *bolt.Store, rec relayer.Record) func() error {
	return func() error {
		_, err := store.Create(t.Context(), rec)
		return err
	}
}

func TestWritesShareACommit(t *testing.T) {
	store, g := gated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	var writes []func() error
	for i := range 50 {
		writes = append(writes, create(t, store, relayer.Record{ID: fmt.Sprint(i)}))
	}
	answers := behind(t, store, writes...)
	close(g.open)
	for _, answer := range append(answers, first) {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if commits := g.commits.Load(); commits != 2 {
		t.Errorf("51 creates took %d commits, want 2", commits)
	}
}

func TestLoneWriteDoesNotWait(t *testing.T) {
	store, _ := opened(t)
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

// TestRefusedWritesInABatch mixes writes that are refused with others that are
// not, in one commit: each gets its own answer, and later ones see earlier ones.
func TestRefusedWritesInABatch(t *testing.T) {
	store, g := gated(t)
	first := make(chan error, 1)
	stands := relayer.Record{ID: "stands", Claim: "held"}
	go func() {
		var err error
		stands, err = store.Create(t.Context(), stands)
		first <- err
	}()
	<-g.reached
	update := func(rec relayer.Record) func() error {
		return func() error {
			_, err := store.Update(t.Context(), rec)
			return err
		}
	}
	answers := behind(t, store,
		create(t, store, relayer.Record{ID: "stands"}),
		create(t, store, relayer.Record{ID: "a", Claim: "held"}),
		create(t, store, relayer.Record{ID: "a", Claim: "new"}),
		create(t, store, relayer.Record{ID: "a"}),
		create(t, store, relayer.Record{ID: "b", Claim: "new"}),
		update(relayer.Record{ID: "stands", Revision: 1, Claim: "moved"}),
		update(relayer.Record{ID: "stands", Revision: 1}),
		create(t, store, relayer.Record{ID: "b", Claim: "held"}),
		func() error { return store.Delete(t.Context(), "missing", 1) },
		func() error { return store.Delete(t.Context(), "b", 4) },
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
		if err := <-answers[i]; !errors.Is(err, want) {
			t.Errorf("write %d: error is %v, want %v", i, err, want)
		}
	}
	recs, total, err := store.List(t.Context(), 0, 10)
	if err != nil || total != 3 || len(recs) != 3 {
		t.Fatalf("%d records, total %d, error %v", len(recs), total, err)
	}
	for i, want := range []string{"stands moved", "a new", "b held"} {
		if got := recs[i].ID + " " + recs[i].Claim; got != want {
			t.Errorf("record %d is %q, want %q", i, got, want)
		}
	}
	wantSound(t, store)
}

// TestRefusedWritesCommitNothing: an answer that changes nothing needs no disk.
func TestRefusedWritesCommitNothing(t *testing.T) {
	store, _ := opened(t)
	var commits atomic.Int32
	store.InterceptCommits(func(commit func() error) error {
		commits.Add(1)
		return commit()
	})
	for range 5 {
		_ = create(t, store, relayer.Record{ID: "one"})()
		_ = store.Delete(t.Context(), "missing", 1)
	}
	if commits.Load() != 1 {
		t.Errorf("%d commits, want 1", commits.Load())
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	store, g := gated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	ctx, cancel := context.WithCancel(t.Context())
	answers := behind(t, store, func() error {
		_, err := store.Create(ctx, relayer.Record{ID: "second"})
		return err
	})
	cancel()
	select {
	case err := <-answers[0]:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want %v", err, context.Canceled)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the cancelled write still waits")
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := create(t, store, relayer.Record{ID: "third"})(); err != nil {
		t.Error(err)
	}
	if _, err := store.Get(t.Context(), "second"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get of the cancelled: error is %v", err)
	}
}

// TestCancelledDuringCommit: once the commit has begun its outcome is told.
func TestCancelledDuringCommit(t *testing.T) {
	store, g := gated(t)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() {
		_, err := store.Create(ctx, relayer.Record{ID: "one"})
		answer <- err
	}()
	<-g.reached
	cancel()
	select {
	case err := <-answer:
		t.Fatalf("answered before the commit was done: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(g.open)
	if err := <-answer; err != nil {
		t.Errorf("the write was made, and its answer is %v", err)
	}
	if _, err := store.Get(t.Context(), "one"); err != nil {
		t.Error(err)
	}
}

func TestCloseFinishesWhatWasAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	g := newGate()
	store.InterceptCommits(g.through)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	answers := behind(t, store, create(t, store, relayer.Record{ID: "second"}), create(t, store, relayer.Record{ID: "third"}))
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
	for _, answer := range append(answers, first) {
		if err := <-answer; err != nil {
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
	if _, total, err := store.List(t.Context(), 0, 0); err != nil || total != 3 {
		t.Errorf("total is %d, want 3; error %v", total, err)
	}
	wantSound(t, store)
}

func TestCloseUnderLoad(t *testing.T) {
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
					if _, _, err := store.List(t.Context(), i, 5); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
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
		if _, total, err := store.List(t.Context(), 0, 0); err != nil || int64(total) != made.Load() {
			t.Errorf("%d records, %d acknowledged, error %v", total, made.Load(), err)
		}
		wantSound(t, store)
		_ = store.Close()
	}
}

// TestLargeBatchIsSplit queues more bytes than one commit takes.
func TestLargeBatchIsSplit(t *testing.T) {
	store, g := gated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	large := make([]byte, 3<<20)
	var writes []func() error
	for i := range 5 {
		writes = append(writes, create(t, store, relayer.Record{ID: fmt.Sprint(i), Document: large}))
	}
	answers := behind(t, store, writes...)
	close(g.open)
	for _, answer := range append(answers, first) {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if commits := g.commits.Load(); commits != 4 {
		t.Errorf("5 creates of 3 MiB after the first took %d commits, want 3", commits-1)
	}
}

// TestBurstIsForgotten: once a burst is written, the store holds none of its
// bytes.
func TestBurstIsForgotten(t *testing.T) {
	store, g := gated(t)
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
	answers := behind(t, store, burst...)
	close(g.open)
	for _, answer := range append(answers, first) {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	if grown := heapInUse() - before; grown > writes*size/4 {
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

func TestLimits(t *testing.T) {
	store, _ := opened(t)
	for name, rec := range map[string]relayer.Record{
		"no id":      {},
		"long id":    {ID: strings.Repeat("i", relayer.MaxIDLength+1)},
		"long claim": {ID: "one", Claim: strings.Repeat("c", relayer.MaxClaimLength+1)},
	} {
		if _, err := store.Create(t.Context(), rec); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("Create with %s: error is %v", name, err)
		}
		if _, err := store.Update(t.Context(), rec); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("Update with %s: error is %v", name, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("i", 100_000)} {
		if _, err := store.Get(t.Context(), id); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("Get: error is %v", err)
		}
		if err := store.Delete(t.Context(), id, 1); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("Delete: error is %v", err)
		}
	}
}

func wantSound(t *testing.T, store *bolt.Store) {
	t.Helper()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
