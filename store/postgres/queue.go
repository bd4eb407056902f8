package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

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
	actor string
	turn  int // in the round-robin order of the last take
	err   error
	done  chan struct{}
}

// finish reports the result to the caller. The writer calls it once for each write that it
// took.
func (w *write) finish(err error) {
	w.err = err
	close(w.done)
}

// queue holds the writes that wait for the writer (group commit). A write that waits alone
// is taken at once. They are taken round-robin by actor, so that a caller with many writes
// does not delay those of others. The writes of one actor are taken in their order. All
// methods are safe for concurrent use.
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
	actor, _ := relayer.ActorFrom(ctx)
	w.ctx, w.actor, w.done = ctx, actor.ID, make(chan struct{})
	if !q.add(w) {
		return errClosed
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	if q.remove(w) {
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

// remove removes a write, and returns false if it was taken before.
func (q *queue) remove(w *write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
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

// take removes the next batch from the queue. It finishes and leaves out writes whose
// context has ended, so that the batch can be empty.
func (q *queue) take() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sort()
	count := q.batchLength()
	// The batch and the rest must not share an array: that would keep the bytes of finished
	// writes in memory.
	batch := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	return slices.DeleteFunc(batch, func(w *write) bool {
		err := w.ctx.Err() // of a context of this package, so it cannot panic
		if err != nil {
			w.finish(err)
		}
		return err != nil
	})
}

func (q *queue) takeAll() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// sort orders the waiting writes round-robin: the first one of each actor, then the second
// ones. An actor that was taken from is behind the others at the next call.
func (q *queue) sort() {
	turns := make(map[string]int)
	for _, w := range q.waiting {
		w.turn = turns[w.actor]
		turns[w.actor]++
	}
	slices.SortStableFunc(q.waiting, func(a, b *write) int { return cmp.Compare(a.turn, b.turn) })
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
