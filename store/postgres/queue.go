package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

// A batch is bounded, so that many waiting writes neither delay the first of them
// nor keep other instances waiting for the write lock. A single write may exceed
// maxBatchBytes.
const (
	maxBatchWrites = 256
	maxBatchBytes  = 8 << 20
)

type write struct {
	size int

	// ask adds the statement of the write to a message, and read reads its result.
	// The error of read is that of the whole transaction.
	ask  func(*pgx.Batch)
	read func(pgx.BatchResults) (outcome, error)

	ctx   context.Context
	begun atomic.Bool
	err   error
	done  chan struct{}
}

// finish reports the result to the caller. The writer calls it once for each write that it
// took.
func (w *write) finish(err error) {
	w.err = err
	close(w.done)
}

// begin decides between the writer that takes the write and the caller whose context
// ends. It returns true for the first of them.
func (w *write) begin() bool { return w.begun.CompareAndSwap(false, true) }

// queue holds the writes that wait for the writer (group commit). A write that waits alone
// is taken at once. All methods are safe for concurrent use.
type queue struct {
	mu      sync.Mutex
	arrived sync.Cond
	waiting []*write
	closed  bool
}

func newQueue() *queue {
	q := new(queue)
	q.arrived.L = &q.mu
	return q
}

// do adds a write and returns the result that the writer reports. It returns the error of
// ctx if ctx ends before the writer takes the write, and errClosed after close.
func (q *queue) do(ctx context.Context, w *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.ctx, w.done = ctx, make(chan struct{})
	if !q.add(w) {
		return errClosed
	}
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

func (q *queue) add(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, w)
	q.arrived.Signal()
	return true
}

// wait blocks until a write waits. It returns false once the queue is closed and empty.
func (q *queue) wait() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.arrived.Wait()
	}
	return len(q.waiting) > 0
}

// take removes the next batch from the queue. It leaves out writes whose context has
// ended, so that the batch can be empty.
func (q *queue) take() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w *write) bool { return w.begun.Load() })
	return q.remove(q.batchLength())
}

func (q *queue) takeAll() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(len(q.waiting))
}

// remove copies the batch. If the batch and the rest shared an array, that would keep the
// bytes of finished writes in memory.
func (q *queue) remove(count int) []*write {
	batch := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	return slices.DeleteFunc(batch, func(w *write) bool { return !w.beginLive() })
}

func (w *write) beginLive() bool {
	if !w.begin() {
		return false
	}
	if err := w.ctx.Err(); err != nil {
		w.finish(err)
		return false
	}
	return true
}

func (q *queue) batchLength() int {
	size := 0
	for i, w := range q.waiting {
		size += w.size
		if i == maxBatchWrites || i > 0 && size > maxBatchBytes {
			return i
		}
	}
	return len(q.waiting)
}

// close rejects further writes. Waiting writes stay in the queue.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrived.Signal()
}

// do queues a write and waits for its result. A write that is not taken from the
// queue within the timeout of the Store is not made.
func (s *Store) do(ctx context.Context, w *write) error {
	limited, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	err := s.queue.do(limited, w)
	if err == context.DeadlineExceeded && ctx.Err() == nil { // and not an error that wraps it
		return fmt.Errorf("%w: the write waited longer than %v for earlier writes", relayer.ErrUnavailable, s.opts.timeout)
	}
	return err
}
