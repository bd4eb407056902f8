// Package groupcommit collects the writes of many callers, so that one of them, the
// leader, commits all of them together.
//
// Callers block in [Queue.Do]. While they wait for their results, they also wait for a
// lock. The one that acquires it is the leader: it commits a batch for all. It calls
// [Queue.Take], and [Write.Finish] for each write. A write that waits alone is committed at
// once, by its own caller: the queue never delays a write to collect more.
//
// Writes are taken round-robin by key, so that a caller with many of them does not delay
// those of others. The writes of one key are taken in their order.
package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrClosed reports that the queue accepts no more writes.
var ErrClosed = errors.New("the queue is closed")

// Limits bound a batch, so that many waiting writes neither delay the first of
// them nor hold all their bytes in memory at once. A single write may exceed
// Bytes.
type Limits struct {
	Writes int
	Bytes  int
}

// Write is one write of a caller.
type Write[T any] struct {
	Value T

	ctx  context.Context
	key  string
	size int
	turn int // in the round-robin order of the last Take
	err  error
	done chan struct{}
}

// Finish reports the result to the caller. It is called exactly once for each write that
// was taken.
func (w *Write[T]) Finish(err error) {
	w.err = err
	close(w.done)
}

func (w *Write[T]) isFinished() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Queue holds the writes that wait. All methods are safe for concurrent use, but only the
// holder of the lock may call Take.
type Queue[T any] struct {
	limits  Limits
	lock    chan struct{}
	commit  func(context.Context)
	mu      sync.Mutex
	waiting []*Write[T]
	closed  bool
}

// New returns an empty queue. The lock is a channel with room for one value: it is held by
// the goroutine that sent the value. The leader calls commit with its own context and with
// the lock held. If commit cannot take a batch before that context ends, it may return:
// another caller then leads.
func New[T any](limits Limits, lock chan struct{}, commit func(context.Context)) *Queue[T] {
	return &Queue[T]{limits: limits, lock: lock, commit: commit}
}

// Do adds a write of size bytes and returns its result. The key identifies the caller. It
// returns the error of ctx if ctx ends before the write is taken, and [ErrClosed] after
// Close. Once taken, the write runs to its end, even if ctx is canceled. A leader returns
// after it has committed for the others, even if its ctx ends.
func (q *Queue[T]) Do(ctx context.Context, key string, size int, value T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &Write[T]{Value: value, ctx: ctx, key: key, size: size, done: make(chan struct{})}
	if !q.add(w) {
		return ErrClosed
	}
	for {
		select {
		case <-w.done:
			return w.err
		case q.lock <- struct{}{}:
			q.lead(w)
		case <-ctx.Done():
			if q.remove(w) {
				return ctx.Err()
			}
			<-w.done
		}
	}
}

// lead commits a batch and releases the lock. It commits nothing if another holder of the
// lock has finished the write just before.
func (q *Queue[T]) lead(w *Write[T]) {
	defer func() { <-q.lock }()
	if !w.isFinished() {
		q.commit(w.ctx)
	}
}

func (q *Queue[T]) add(w *Write[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, w)
	return true
}

// remove removes a write, and returns false if it was taken before.
func (q *Queue[T]) remove(w *Write[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// Take removes the next batch from the queue. It finishes and leaves out writes whose context
// has ended, so that the batch can be empty.
func (q *Queue[T]) Take() []*Write[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sort()
	count := q.batchLength()
	// The batch and the rest must not share an array: that would keep the bytes of finished
	// writes in memory.
	batch := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	return slices.DeleteFunc(batch, func(w *Write[T]) bool {
		err := errorOf(w.ctx)
		if err != nil {
			w.Finish(err)
		}
		return err != nil
	})
}

// errorOf returns the error of a context. The leader must survive the context of another caller,
// which can have any type.
func errorOf(ctx context.Context) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the context of the write panicked: %v", cause)
		}
	}()
	return ctx.Err()
}

// sort orders the waiting writes round-robin: the first one of each key, then the second
// ones. A key that was taken from is behind the others at the next call.
func (q *Queue[T]) sort() {
	turns := make(map[string]int)
	for _, w := range q.waiting {
		w.turn = turns[w.key]
		turns[w.key]++
	}
	slices.SortStableFunc(q.waiting, func(a, b *Write[T]) int { return cmp.Compare(a.turn, b.turn) })
}

func (q *Queue[T]) batchLength() int {
	size := 0
	for i, w := range q.waiting {
		size += w.size
		if i == q.limits.Writes || i > 0 && size > q.limits.Bytes {
			return i
		}
	}
	return len(q.waiting)
}

// Len returns the number of writes that wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Close rejects further writes with [ErrClosed]. Waiting writes stay in the queue. Their
// callers, or the holder of the lock, commit them.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}
