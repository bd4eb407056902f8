package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

// A turn is bounded, so that a flood of writes neither makes the first of them
// wait for the last nor keeps the other instances waiting.
const (
	maxTurnWrites = 256
	maxTurnBytes  = 8 << 20
)

// write is one caller's change, waiting for its answer.
type write struct {
	ctx  context.Context
	size int

	// ask adds the one statement of the write to what is sent, and read reads the
	// answer to it. Its error is that of the transaction as a whole.
	ask  func(*pgx.Batch)
	read func(pgx.BatchResults) (outcome, error)

	taken atomic.Bool
	err   error
	done  chan struct{}
}

// begin takes the write for a turn. From here on its caller waits for the
// outcome. It is false where the caller has gone.
func (w *write) begin() bool { return w.taken.CompareAndSwap(false, true) }

func (w *write) answer(err error) {
	w.err = err
	close(w.done)
}

// queue holds the writes that wait for this instance's next turn. It is much like
// that of store/bolt, and apart from it because modules of different versions
// share nothing that has none.
type queue struct {
	patience time.Duration

	mu      sync.Mutex
	arrived sync.Cond
	waiting []*write
	closed  bool
}

func newQueue(patience time.Duration) *queue {
	q := &queue{patience: patience}
	q.arrived.L = &q.mu
	return q
}

// do has a write carried out and waits for the answer. Where the context ends
// first, or it waits for longer than it should, it is not carried out.
func (q *queue) do(ctx context.Context, w *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.ctx, w.done = ctx, make(chan struct{})
	if !q.add(w) {
		return errClosed
	}
	timer := time.NewTimer(q.patience)
	defer timer.Stop()
	var gone error
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		gone = ctx.Err()
	case <-timer.C:
		gone = fmt.Errorf("%w: no turn to write within %v", relayer.ErrUnavailable, q.patience)
	}
	if w.begin() {
		return gone
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

// take returns those of the writes that wait whose callers do too, as many as
// make a turn.
func (q *queue) take() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w *write) bool { return w.taken.Load() })
	return q.split(turnLength(q.waiting))
}

// takeAll returns them without an end.
func (q *queue) takeAll() []*write {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.split(len(q.waiting))
}

func (q *queue) split(count int) []*write {
	first := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	return slices.DeleteFunc(first, func(w *write) bool { return !w.isWanted() })
}

// isWanted is false where the caller has gone or is about to.
func (w *write) isWanted() bool {
	if !w.begin() {
		return false
	}
	if err := w.ctx.Err(); err != nil {
		w.answer(err)
		return false
	}
	return true
}

func turnLength(waiting []*write) int {
	size := 0
	for i, w := range waiting {
		size += w.size
		if i == maxTurnWrites || i > 0 && size > maxTurnBytes {
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
