package storeutil_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// batchLimits are those of a batch.
type batchLimits struct{ Writes, Bytes int }

var errRefused = errors.New("refused")

// newLocked returns a queue whose lock is held, so that writes wait.
func newLocked(of batchLimits, commit func(context.Context)) (q *storeutil.Queue[int], release func()) {
	lock := make(chan struct{}, 1)
	lock <- struct{}{}
	return storeutil.NewQueue[int](lock, of.Writes, of.Bytes, commit), func() { <-lock }
}

var wide = batchLimits{Writes: 10, Bytes: 100}

// start calls Do for each value and returns when all of them wait.
func start(ctx context.Context, q *storeutil.Queue[int], size int, values ...int) []chan error {
	var results []chan error
	for _, value := range values {
		result := make(chan error, 1)
		before := q.Len()
		go func() { result <- q.Do(ctx, size, value) }()
		for q.Len() == before {
			time.Sleep(time.Millisecond)
		}
		results = append(results, result)
	}
	return results
}

func values(batch []*storeutil.QueuedWrite[int]) (values []int) {
	for _, w := range batch {
		values = append(values, w.Value)
	}
	return values
}

func finish(batch []*storeutil.QueuedWrite[int], err error) {
	for _, w := range batch {
		w.Finish(err)
	}
}

// take takes a batch, compares it, and finishes its writes.
func take(t *testing.T, q *storeutil.Queue[int], err error, want ...int) {
	t.Helper()
	batch := q.Take()
	if got := values(batch); !slices.Equal(got, want) {
		t.Errorf("batch is %v, want %v", got, want)
	}
	finish(batch, err)
}

// wantResults waits for writes, and compares their errors with one.
func wantResults(t *testing.T, results []chan error, want error) {
	t.Helper()
	for _, result := range results {
		if err := <-result; err != want {
			t.Errorf("error is %v, want %v", err, want)
		}
	}
}

func TestQueue_Alone(t *testing.T) {
	var q *storeutil.Queue[int]
	commits := 0
	q = storeutil.NewQueue[int](make(chan struct{}, 1), wide.Writes, wide.Bytes, func(context.Context) {
		commits++
		take(t, q, errRefused, 7)
	})
	for range 100 {
		if err := q.Do(t.Context(), 1, 7); err != errRefused {
			t.Fatalf("error is %v, want %v", err, errRefused)
		}
	}
	if commits != 100 || q.Len() != 0 {
		t.Errorf("%d commits, want 100; %d writes wait", commits, q.Len())
	}
}

// A write alone does not wait for goroutines that are ready to run.
func TestQueue_AloneOnBusyMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var q *storeutil.Queue[int]
	var hasRun atomic.Bool
	waited := 0
	q = storeutil.NewQueue[int](make(chan struct{}, 1), wide.Writes, wide.Bytes, func(context.Context) {
		if hasRun.Load() {
			waited++
		}
		take(t, q, nil, 7)
	})
	for range 100 {
		hasRun.Store(false)
		go hasRun.Store(true)
		if err := q.Do(t.Context(), 1, 7); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if waited > 50 { // the machine can stop a goroutine at any time
		t.Errorf("%d of 100 writes waited for another goroutine", waited)
	}
}

func TestQueue_OneCommitsForAll(t *testing.T) {
	var q *storeutil.Queue[int]
	var batches [][]int
	q, release := newLocked(batchLimits{Writes: 4, Bytes: 100}, func(context.Context) {
		batch := q.Take()
		batches = append(batches, values(batch))
		finish(batch, nil)
	})
	results := start(t.Context(), q, 1, 1, 2, 3, 4, 5, 6)
	release()
	wantResults(t, results, nil)
	if len(batches) != 2 || !slices.Equal(batches[0], []int{1, 2, 3, 4}) || !slices.Equal(batches[1], []int{5, 6}) {
		t.Errorf("batches are %v", batches)
	}
}

// A leader that gives up before it takes a batch leaves the writes to another one.
func TestQueue_LeaderGivesUp(t *testing.T) {
	var q *storeutil.Queue[int]
	ctx := t.Context()
	commits := 0
	q, release := newLocked(wide, func(of context.Context) {
		if of != ctx {
			t.Error("the context is not that of the leader")
		}
		if commits++; commits > 1 {
			finish(q.Take(), nil)
		}
	})
	results := start(ctx, q, 1, 1, 2, 3)
	release()
	wantResults(t, results, nil)
	if commits != 2 {
		t.Errorf("%d commits, want 2", commits)
	}
}

// pausedContext calls pause when a caller is about to wait.
type pausedContext struct {
	context.Context
	pause func()
}

func (c pausedContext) Done() <-chan struct{} {
	c.pause()
	return c.Context.Done()
}

// A caller whose write is finished does not commit, although the lock is free.
func TestQueue_FinishedBeforeLock(t *testing.T) {
	for range 20 {
		q, release := newLocked(wide, func(context.Context) { t.Error("the caller commits") })
		ctx := pausedContext{t.Context(), sync.OnceFunc(func() {
			finish(q.Take(), errRefused)
			release()
		})}
		if err := q.Do(ctx, 1, 1); err != errRefused {
			t.Errorf("error is %v, want %v", err, errRefused)
		}
	}
}

func TestQueue_Limits(t *testing.T) {
	tests := []struct {
		name   string
		limits batchLimits
		size   int
		want   [][]int
	}{
		{"writes", batchLimits{Writes: 2, Bytes: 100}, 1, [][]int{{1, 2}, {3, 4}, {5}}},
		{"bytes", batchLimits{Writes: 10, Bytes: 30}, 10, [][]int{{1, 2, 3}, {4, 5}}},
		{"one write above the byte limit", batchLimits{Writes: 10, Bytes: 5}, 10, [][]int{{1}, {2}, {3}, {4}, {5}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q, _ := newLocked(test.limits, nil)
			results := start(t.Context(), q, test.size, 1, 2, 3, 4, 5)
			for _, want := range test.want {
				take(t, q, nil, want...)
			}
			wantResults(t, results, nil)
		})
	}
}

// A caller with many writes does not delay those of others by more than a batch. The order of
// the writes of each caller stays.
func TestQueue_RoundRobin(t *testing.T) {
	q, _ := newLocked(batchLimits{Writes: 3, Bytes: 100}, nil)
	var results []chan error
	add := func(actor string, values ...int) {
		results = append(results, start(relayer.WithActor(t.Context(), relayer.Actor{ID: actor}), q, 1, values...)...)
	}
	add("a", 1, 2, 3, 4, 5, 6)
	take(t, q, nil, 1, 2, 3)
	add("b", 11, 12)
	take(t, q, nil, 4, 11, 5)
	add("c", 21)
	add("d", 31)
	take(t, q, nil, 12, 6, 21) // a and b have waited for longer
	take(t, q, nil, 31)
	wantResults(t, results, nil)
}

func TestQueue_ContextEndsWhileWaiting(t *testing.T) {
	q, _ := newLocked(wide, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := q.Do(ctx, 1, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	if q.Len() != 0 {
		t.Error("the write still waits")
	}
	results := start(t.Context(), q, 1, 2)
	take(t, q, nil, 2) // the live write alone
	wantResults(t, results, nil)
}

// The context of a write has ended, and its caller is not scheduled.
func TestQueue_ContextEnded(t *testing.T) {
	q, _ := newLocked(wide, nil)
	ended, cancel := context.WithCancel(t.Context())
	ctx := pausedContext{ended, func() {
		cancel()
		if batch := q.Take(); len(batch) > 0 {
			t.Errorf("batch is %v", values(batch))
		}
	}}
	if err := q.Do(ctx, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

func TestQueue_ContextEndsAfterTake(t *testing.T) {
	q, _ := newLocked(wide, nil)
	ctx, cancel := context.WithCancel(t.Context())
	results := start(ctx, q, 1, 1)
	batch := q.Take()
	cancel()
	select {
	case err := <-results[0]:
		t.Fatalf("Do returned %v before the write was finished", err)
	case <-time.After(20 * time.Millisecond):
	}
	finish(batch, errRefused)
	wantResults(t, results, errRefused)
}

// Close commits what waits, also if no caller leads.
func TestQueue_Close(t *testing.T) {
	var q *storeutil.Queue[int]
	var batches [][]int
	q, release := newLocked(batchLimits{Writes: 2, Bytes: 100}, func(context.Context) {
		batch := q.Take()
		batches = append(batches, values(batch))
		finish(batch, errRefused)
	})
	results := start(t.Context(), q, 1, 1, 2, 3)
	closed := make(chan struct{})
	go func() { q.Close(); close(closed) }()
	for isClosed := false; !isClosed; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		isClosed = errors.Is(q.Do(ctx, 1, 4), relayer.ErrUnavailable)
		cancel()
	}
	select {
	case <-closed:
		t.Error("Close returned before the writes were committed")
	default:
	}
	release()
	<-closed
	wantResults(t, results, errRefused) // of the writes that were accepted before Close
	if len(batches) != 2 || !slices.Equal(batches[0], []int{1, 2}) || !slices.Equal(batches[1], []int{3}) {
		t.Errorf("batches are %v", batches)
	}
}

// A commit that panics leaves no caller waiting, and the lock is free.
func TestQueue_CommitPanics(t *testing.T) {
	var q *storeutil.Queue[int]
	panics := true
	q, release := newLocked(wide, func(context.Context) {
		batch := q.Take()
		batch[0].Finish(errRefused)
		if panics {
			panics = false
			panic("in the commit")
		}
		finish(batch[1:], nil)
	})
	// Only the leader panics, and that is the first caller whose write the lock is released to.
	var panicked atomic.Int64
	ends := make(chan error, 3)
	for n := range 3 {
		go func() {
			defer func() {
				if recover() != nil {
					panicked.Add(1)
					ends <- nil
				}
			}()
			ends <- q.Do(t.Context(), 1, n)
		}()
	}
	for q.Len() < 3 {
		time.Sleep(time.Millisecond)
	}
	release()
	unknown := 0
	for range 3 {
		if errors.Is(<-ends, relayer.ErrOutcomeUnknown) {
			unknown++
		}
	}
	if panicked.Load() != 1 || unknown < 1 {
		t.Errorf("%d callers panicked, and %d have an unknown outcome", panicked.Load(), unknown)
	}
	if err := q.Do(t.Context(), 1, 4); err != errRefused {
		t.Errorf("a later write: error is %v", err)
	}
}
