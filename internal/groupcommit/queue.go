// Package groupcommit collects the writes of many callers for one writer, which
// commits them together.
//
// Callers block in [Queue.DoLeading]. The writer loops over [Queue.Wait] and
// [Queue.Take], commits the batch, and calls [Write.Finish] for each write. A
// write that waits alone is taken at once: the queue never delays a write to
// collect more.
package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

// Write is one write of a caller. Value describes it to the writer.
type Write[T any] struct {
	Value T

	ctx   context.Context
	size  int
	begun atomic.Bool
	err   error
	done  chan struct{}
}

// Finish reports the result to the caller. The writer calls it exactly once for
// each write it took.
func (w *Write[T]) Finish(err error) {
	w.err = err
	close(w.done)
}

// begin decides between the writer that takes the write and the caller whose context
// ends. It returns true for the first of them.
func (w *Write[T]) begin() bool { return w.begun.CompareAndSwap(false, true) }

// Queue holds the writes that wait for the writer. All methods are safe for
// concurrent use, but only one goroutine may call Wait, and only one at a time Take.
type Queue[T any] struct {
	limits  Limits
	mu      sync.Mutex
	arrived sync.Cond
	waiting []*Write[T]
	closed  bool
}

// New returns an empty queue.
func New[T any](limits Limits) *Queue[T] {
	q := &Queue[T]{limits: limits}
	q.arrived.L = &q.mu
	return q
}

// DoLeading adds a write of size bytes and returns the result that the writer reports.
// It returns the error of ctx if ctx ends before the writer takes the write, and
// [ErrClosed] after Close. Once taken, the write runs to its end, even if ctx is
// canceled.
//
// It calls lead before it notifies the writer. If no other goroutine writes, lead may act
// as the writer once: take a batch and finish it. A write that is alone then needs no
// switch to another goroutine and back.
func (q *Queue[T]) DoLeading(ctx context.Context, size int, value T, lead func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &Write[T]{Value: value, ctx: ctx, size: size, done: make(chan struct{})}
	if !q.add(w) {
		return ErrClosed
	}
	lead()
	q.notify()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	if w.begin() {
		return ctx.Err()
	}
	<-w.done
	return w.err
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

// notify wakes the writer if writes are waiting.
func (q *Queue[T]) notify() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		q.arrived.Signal()
	}
}

// Wait blocks until a write is waiting. It returns false once the queue is
// closed and empty.
func (q *Queue[T]) Wait() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.arrived.Wait()
	}
	return len(q.waiting) > 0
}

// Take removes the next batch from the queue. It leaves out writes whose context
// has ended, so that the batch can be empty.
func (q *Queue[T]) Take() []*Write[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w *Write[T]) bool { return w.begun.Load() })
	count := q.batchLength()
	// The batch and the rest must not share an array: that would keep the bytes of finished
	// writes in memory.
	batch := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	return slices.DeleteFunc(batch, func(w *Write[T]) bool { return !beginLive(w) })
}

func beginLive[T any](w *Write[T]) bool {
	if !w.begin() {
		return false
	}
	if err := w.ctx.Err(); err != nil {
		w.Finish(err)
		return false
	}
	return true
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

// Close rejects further writes with [ErrClosed]. Waiting writes stay in the queue.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrived.Signal()
}
