package groupcommit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer/internal/groupcommit"
)

var errRefused = errors.New("refused")

// newLocked returns a queue whose lock is held, so that writes wait.
func newLocked(limits groupcommit.Limits, commit func(context.Context)) (q *groupcommit.Queue[int], release func()) {
	lock := make(chan struct{}, 1)
	lock <- struct{}{}
	return groupcommit.New[int](limits, lock, commit), func() { <-lock }
}

var wide = groupcommit.Limits{Writes: 10, Bytes: 100}

// start calls Do for each value and returns when all of them wait.
func start(ctx context.Context, q *groupcommit.Queue[int], size int, values ...int) []chan error {
	return startAs(ctx, q, "", size, values...)
}

func startAs(ctx context.Context, q *groupcommit.Queue[int], key string, size int, values ...int) []chan error {
	var results []chan error
	for _, value := range values {
		result := make(chan error, 1)
		before := q.Len()
		go func() { result <- q.Do(ctx, key, size, value) }()
		for q.Len() == before {
			time.Sleep(time.Millisecond)
		}
		results = append(results, result)
	}
	return results
}

func values(batch []*groupcommit.Write[int]) (values []int) {
	for _, w := range batch {
		values = append(values, w.Value)
	}
	return values
}

func finish(batch []*groupcommit.Write[int], err error) {
	for _, w := range batch {
		w.Finish(err)
	}
}

func TestTake_OrderAndResults(t *testing.T) {
	q, _ := newLocked(wide, nil)
	results := start(t.Context(), q, 1, 1, 2, 3)
	batch := q.Take()
	if got := values(batch); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("batch is %v", got)
	}
	batch[0].Finish(errRefused)
	finish(batch[1:], nil)
	for i, want := range []error{errRefused, nil, nil} {
		if err := <-results[i]; err != want {
			t.Errorf("write %d: error is %v, want %v", i+1, err, want)
		}
	}
}

func TestDo_Alone(t *testing.T) {
	var q *groupcommit.Queue[int]
	commits := 0
	q = groupcommit.New[int](wide, make(chan struct{}, 1), func(context.Context) {
		commits++
		batch := q.Take()
		if got := values(batch); !slices.Equal(got, []int{7}) {
			t.Errorf("batch is %v", got)
		}
		finish(batch, errRefused)
	})
	for range 100 {
		if err := q.Do(t.Context(), "", 1, 7); err != errRefused {
			t.Fatalf("error is %v, want %v", err, errRefused)
		}
	}
	if commits != 100 || q.Len() != 0 {
		t.Errorf("%d commits, want 100; %d writes wait", commits, q.Len())
	}
}

func TestDo_OneCommitsForAll(t *testing.T) {
	var q *groupcommit.Queue[int]
	var batches [][]int
	q, release := newLocked(groupcommit.Limits{Writes: 4, Bytes: 100}, func(context.Context) {
		batch := q.Take()
		batches = append(batches, values(batch))
		finish(batch, nil)
	})
	results := start(t.Context(), q, 1, 1, 2, 3, 4, 5, 6)
	release()
	for _, result := range results {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
	if len(batches) != 2 || !slices.Equal(batches[0], []int{1, 2, 3, 4}) || !slices.Equal(batches[1], []int{5, 6}) {
		t.Errorf("batches are %v", batches)
	}
}

// A leader that gives up before it takes a batch leaves the writes to another one.
func TestDo_LeaderGivesUp(t *testing.T) {
	var q *groupcommit.Queue[int]
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
	for _, result := range results {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
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
func TestDo_FinishedBeforeLock(t *testing.T) {
	for range 20 {
		q, release := newLocked(wide, func(context.Context) { t.Error("the caller commits") })
		ctx := pausedContext{t.Context(), sync.OnceFunc(func() {
			finish(q.Take(), errRefused)
			release()
		})}
		if err := q.Do(ctx, "", 1, 1); err != errRefused {
			t.Errorf("error is %v, want %v", err, errRefused)
		}
	}
}

func TestTake_Limits(t *testing.T) {
	tests := []struct {
		name   string
		limits groupcommit.Limits
		size   int
		want   [][]int
	}{
		{"writes", groupcommit.Limits{Writes: 2, Bytes: 100}, 1, [][]int{{1, 2}, {3, 4}, {5}}},
		{"bytes", groupcommit.Limits{Writes: 10, Bytes: 30}, 10, [][]int{{1, 2, 3}, {4, 5}}},
		{"one write above the byte limit", groupcommit.Limits{Writes: 10, Bytes: 5}, 10, [][]int{{1}, {2}, {3}, {4}, {5}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			q, _ := newLocked(test.limits, nil)
			results := start(t.Context(), q, test.size, 1, 2, 3, 4, 5)
			for _, want := range test.want {
				batch := q.Take()
				if got := values(batch); !slices.Equal(got, want) {
					t.Errorf("batch is %v, want %v", got, want)
				}
				finish(batch, nil)
			}
			for _, result := range results {
				<-result
			}
		})
	}
}

// A caller with many writes does not delay those of others by more than a batch. The order of
// the writes of each caller stays.
func TestTake_RoundRobin(t *testing.T) {
	q, _ := newLocked(groupcommit.Limits{Writes: 3, Bytes: 100}, nil)
	var results []chan error
	add := func(key string, values ...int) {
		results = append(results, startAs(t.Context(), q, key, 1, values...)...)
	}
	take := func(want ...int) {
		t.Helper()
		batch := q.Take()
		if got := values(batch); !slices.Equal(got, want) {
			t.Errorf("batch is %v, want %v", got, want)
		}
		finish(batch, nil)
	}
	add("a", 1, 2, 3, 4, 5, 6)
	take(1, 2, 3)
	add("b", 11, 12)
	take(4, 11, 5)
	add("c", 21)
	add("d", 31)
	take(12, 6, 21) // a and b have waited for longer
	take(31)
	for _, result := range results {
		<-result
	}
}

func TestDo_ContextEndsWhileWaiting(t *testing.T) {
	q, _ := newLocked(wide, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := q.Do(ctx, "", 1, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	if q.Len() != 0 {
		t.Error("the write still waits")
	}
	results := start(t.Context(), q, 1, 2)
	batch := q.Take()
	if got := values(batch); !slices.Equal(got, []int{2}) {
		t.Errorf("batch is %v, want the live write alone", got)
	}
	finish(batch, nil)
	<-results[0]
}

// The context of a write has ended, and its caller is not scheduled.
func TestTake_ContextEnded(t *testing.T) {
	q, _ := newLocked(wide, nil)
	ended, cancel := context.WithCancel(t.Context())
	ctx := pausedContext{ended, func() {
		cancel()
		if batch := q.Take(); len(batch) > 0 {
			t.Errorf("batch is %v", values(batch))
		}
	}}
	if err := q.Do(ctx, "", 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

func TestDo_ContextEndsAfterTake(t *testing.T) {
	q, _ := newLocked(wide, nil)
	ctx, cancel := context.WithCancel(t.Context())
	result := start(ctx, q, 1, 1)[0]
	batch := q.Take()
	cancel()
	select {
	case err := <-result:
		t.Fatalf("Do returned %v before the write was finished", err)
	case <-time.After(20 * time.Millisecond):
	}
	finish(batch, errRefused)
	if err := <-result; err != errRefused {
		t.Errorf("error is %v, want %v", err, errRefused)
	}
}

func TestClose_RejectsNewKeepsWaiting(t *testing.T) {
	q, _ := newLocked(wide, nil)
	results := start(t.Context(), q, 1, 1)
	q.Close()
	if err := q.Do(t.Context(), "", 1, 2); !errors.Is(err, groupcommit.ErrClosed) {
		t.Errorf("Do after Close: error is %v", err)
	}
	if q.Len() != 1 {
		t.Errorf("%d writes wait, want 1", q.Len())
	}
	finish(q.Take(), nil)
	if err := <-results[0]; err != nil {
		t.Errorf("the write accepted before Close: error is %v", err)
	}
}

// panickingContext panics after its first use.
type panickingContext struct {
	context.Context
	used bool
}

func (c *panickingContext) Err() error {
	if c.used {
		panic("in a context")
	}
	c.used = true
	return nil
}

// A context that panics ends its own write, and the leader takes the others.
func TestTake_ContextPanics(t *testing.T) {
	q, _ := newLocked(wide, nil)
	panics := start(&panickingContext{Context: t.Context()}, q, 1, 1)
	results := start(t.Context(), q, 1, 2)
	batch := q.Take()
	if got := values(batch); !slices.Equal(got, []int{2}) {
		t.Errorf("batch is %v", got)
	}
	finish(batch, nil)
	if err := <-panics[0]; err == nil {
		t.Error("the write whose context panics has no error")
	}
	if err := <-results[0]; err != nil {
		t.Error(err)
	}
}
