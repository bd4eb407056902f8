package storeutil

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
)

// Queue collects the writes of many callers, so that one of them, the leader, commits all of
// them together (group commit).
//
// Callers block in [Queue.Do]. While they wait for their results, they also wait for a
// lock. The caller that acquires it is the leader: it commits a batch for all, with
// [Queue.Take] and [QueuedWrite.Finish]. A write that waits alone is committed at once, by its
// own caller: the queue does not delay it to collect more.
//
// Writes are taken round-robin by [relayer.Actor], so that an actor with many of them does not
// delay those of others. The writes of one actor are taken in their order.
//
// All methods are safe for concurrent use, but only the holder of the lock may call Take.
type Queue[T any] struct {
	lock                chan struct{}
	maxWrites, maxBytes int
	commit              func(context.Context)

	mu      sync.Mutex
	waiting []*QueuedWrite[T]
	closed  bool
	taken   []*QueuedWrite[T] // by the holder of the lock

	lastShared bool // the last batch had several writes; used by the holder of the lock
}

// QueuedWrite is one write of a caller.
type QueuedWrite[T any] struct {
	Value T

	ctx   context.Context
	actor string
	size  int
	turn  int // in the round-robin order of the last Take
	err   error
	done  chan struct{}
}

// Finish reports the result to the caller. It is called once for each write that was taken.
func (w *QueuedWrite[T]) Finish(err error) {
	w.err = err
	close(w.done)
}

func (w *QueuedWrite[T]) isFinished() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// NewQueue returns an empty queue. The lock is a channel with room for one value: it is held by
// the goroutine that sent the value. A batch has at most maxWrites writes and maxBytes bytes, so
// that many waiting writes do not delay the first one. A single write may have more bytes.
//
// The leader calls commit with its own context and with the lock held. Commit must take a batch,
// unless that context ends: another caller then leads. If commit panics, the other callers of
// writes that it has taken and not finished get [relayer.ErrOutcomeUnknown].
func NewQueue[T any](lock chan struct{}, maxWrites, maxBytes int, commit func(context.Context)) *Queue[T] {
	return &Queue[T]{lock: lock, maxWrites: maxWrites, maxBytes: maxBytes, commit: commit}
}

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// Do adds a write of size bytes and returns its result. It returns the error of ctx if ctx ends
// before the write is taken, and [relayer.ErrUnavailable] after Close. Once taken, the write runs
// to its end, even if ctx is canceled. A leader returns after it has committed for the others,
// even if its ctx ends.
func (q *Queue[T]) Do(ctx context.Context, size int, value T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	actor, _ := relayer.ActorFrom(ctx)
	w := &QueuedWrite[T]{Value: value, ctx: ctx, actor: actor.ID, size: size, done: make(chan struct{})}
	if !q.add(w) {
		return errClosed
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
func (q *Queue[T]) lead(w *QueuedWrite[T]) {
	defer func() { <-q.lock }()
	if !w.isFinished() {
		if q.lastShared {
			// The callers of the last batch are about to write again. If they run first, their
			// next writes are in this batch. On a busy machine it would delay a write that is alone.
			runtime.Gosched()
		}
		q.commitOne(w.ctx)
	}
}

// commitOne commits a batch. The caller holds the lock.
func (q *Queue[T]) commitOne(ctx context.Context) {
	defer func() {
		for _, w := range q.taken {
			if !w.isFinished() {
				w.Finish(fmt.Errorf("%w: the commit was interrupted", relayer.ErrOutcomeUnknown))
			}
		}
		q.lastShared = len(q.taken) > 1
		q.taken = nil
	}()
	q.commit(ctx)
}

func (q *Queue[T]) add(w *QueuedWrite[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting = append(q.waiting, w)
	return true
}

// remove removes a write, and returns false if it was taken before.
func (q *Queue[T]) remove(w *QueuedWrite[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// Take removes the next batch from the queue. It leaves out and finishes writes whose context has
// ended, so the batch can be empty.
func (q *Queue[T]) Take() []*QueuedWrite[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sort()
	count := q.batchLength()
	// The batch and the rest must not share an array: that would keep the bytes of finished
	// writes in memory.
	batch := slices.Clone(q.waiting[:count])
	q.waiting = slices.Delete(q.waiting, 0, count)
	batch = slices.DeleteFunc(batch, func(w *QueuedWrite[T]) bool {
		err := w.ctx.Err()
		if err != nil {
			w.Finish(err)
		}
		return err != nil
	})
	q.taken = append(q.taken, batch...)
	return batch
}

// sort orders the waiting writes round-robin: the first one of each actor, then the second ones.
// An actor that was taken from is then behind those that waited too.
func (q *Queue[T]) sort() {
	turns := make(map[string]int)
	for _, w := range q.waiting {
		w.turn = turns[w.actor]
		turns[w.actor]++
	}
	slices.SortStableFunc(q.waiting, func(a, b *QueuedWrite[T]) int { return cmp.Compare(a.turn, b.turn) })
}

func (q *Queue[T]) batchLength() int {
	size := 0
	for i, w := range q.waiting {
		size += w.size
		if i == q.maxWrites || i > 0 && size > q.maxBytes {
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

// Close rejects further writes. It returns when those that wait are committed.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.lock <- struct{}{}
	defer func() { <-q.lock }()
	for q.Len() > 0 {
		q.commitOne(context.Background())
	}
}
