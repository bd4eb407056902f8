package bolt

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A batch is bounded, so that a flood of writes neither makes the first of
// them wait for the last nor holds all their bytes in memory at once.
const (
	maxBatchWrites = 1024
	maxBatchBytes  = 8 << 20
)

// write is one caller's change, waiting for its answer.
type write struct {
	ctx   context.Context
	size  int
	apply func(*change) error
	taken atomic.Bool
	err   error
	done  chan struct{}
}

// begin takes the write for a batch. From here on its caller waits for the
// outcome. It is false where the caller has gone.
func (w *write) begin() bool { return w.taken.CompareAndSwap(false, true) }

func (w *write) answer(err error) {
	w.err = err
	close(w.done)
}

// queue holds the writes that wait for the writer.
type queue struct {
	mu      sync.Mutex
	arrived sync.Cond
	waiting []*write
	closed  bool
}

func newQueue() *queue {
	q := &queue{}
	q.arrived.L = &q.mu
	return q
}

// do has the writer apply a change and waits for the answer. Where the context
// ends first, the change is not applied.
func (q *queue) do(ctx context.Context, size int, apply func(*change) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &write{ctx: ctx, size: size, apply: apply, done: make(chan struct{})}
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

// wait returns once a write waits. It is false once the queue is closed and
// empty.
func (q *queue) wait() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.arrived.Wait()
	}
	return len(q.waiting) > 0
}

// take returns as many of the writes that wait as make a batch.
func (q *queue) take() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.split(batchLength(q.waiting))
}

// split takes the first writes out of the queue. What stays must not share an
// array with them: it would hold on to all their bytes long after their answer.
func (q *queue) split(count int) []*write {
	batch := q.waiting
	if count == len(batch) {
		q.waiting = nil
		return batch
	}
	q.waiting = slices.Clone(batch[count:])
	clear(batch[count:])
	return batch[:count]
}

func batchLength(waiting []*write) int {
	size := 0
	for i, w := range waiting {
		size += w.size
		if i == maxBatchWrites || i > 0 && size > maxBatchBytes {
			return i
		}
	}
	return len(waiting)
}

// close lets nothing more in. What is in it stays.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrived.Signal()
}
