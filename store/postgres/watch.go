package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
)

// imported is the kind of the change that an import is recorded as.
const imported relayer.ChangeKind = "imported"

// Watch returns the changes made by all instances, in the order of their commits, until ctx is
// done. They begin with the call, or after a position, which may come from another instance or a
// [relayer.Listing]. While the server cannot be reached, Watch waits, and then returns the
// changes made meanwhile.
//
// An idle sequence has a heartbeat every 3 to 5 seconds, while the server is reachable. The time
// of a change or heartbeat is when a query began that found no later change. It is zero before
// such a query, as for the first changes after an old position.
//
// The sequence ends with [relayer.ErrGap] at imported records, and at changes that were pruned
// (after 10 minutes) before they were read. It also ends with ErrGap if this database does not
// have the position, as after a restore, or if a call without a position could not reach the
// server. It ends with [relayer.ErrUnavailable] if the Store is closed or the server could not be
// reached for 15 seconds, and with another error if it will never return the changes, as without
// a privilege. The sequence can be ranged over once.
//
// Watchers share one reader per Store as soon as they have caught up. A sequence begins to read
// at its first iteration.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	w := &watcher{store: s, seen: after, yielded: time.Now()}
	if after == "" {
		w.fromDatabase(ctx, func(ctx context.Context) (err error) {
			w.seen, err = s.lastPosition(ctx)
			w.complete = w.yielded
			return err
		})
	}
	return func(yield func(relayer.RecordChange, error) bool) {
		s.feed.join()
		leave := sync.OnceFunc(s.feed.leave)
		defer leave()
		defer context.AfterFunc(ctx, leave)()
		w.failing = time.Time{} // until now nobody waited
		if err := w.run(ctx, yield); err != nil {
			yield(relayer.RecordChange{}, err)
		}
	}
}

// watcher is one consumer of changes, which reads at its own pace. While the consumer takes
// its time, the watcher holds at most the rest of one read.
type watcher struct {
	store    *Store
	seen     string    // empty if Watch could not determine it: then there is a gap
	complete time.Time // up to which seen has all changes; zero if unknown
	failing  time.Time // when the first of the reads began that have failed since the last success
	last     time.Time // of the last element
	yielded  time.Time // when the last element was yielded
}

// run returns the error that ends the sequence, or nil if its consumer has ended it.
func (w *watcher) run(ctx context.Context, yield func(relayer.RecordChange, error) bool) error {
	for ctx.Err() == nil {
		// Before the read, so that what is added after it is noticed.
		next := w.store.feed.next()
		found, err := w.read(ctx)
		if errors.Is(err, relayer.ErrGap) {
			return relayer.ErrGap
		}
		if err != nil && isPermanent(err) {
			return failed(err)
		}
		for i, change := range found.changes {
			found.changes[i] = relayer.RecordChange{} // frees its memory
			if change.Time.Before(w.last) {
				// The buffer and a read of the database date a change independently. What an
				// earlier element has reported is still true.
				change.Time = w.last
			}
			switch {
			case ctx.Err() != nil:
				return nil
			case change.Kind == imported:
				return relayer.ErrGap
			case !yield(change, nil):
				return nil
			}
			w.seen, w.last, w.yielded = change.Position, change.Time, time.Now()
		}
		if len(found.changes) > 0 {
			w.failing = time.Time{} // meanwhile the consumer took its time
			continue
		}
		if ctx.Err() == nil && !w.failing.IsZero() && time.Since(w.failing) >= unreachableLimit {
			return fmt.Errorf("%w: the server could not be reached for %v", relayer.ErrUnavailable, unreachableLimit)
		}
		if err == nil && !w.heartbeat(yield) {
			return nil
		}
		select {
		case <-next:
		case <-time.After(pollInterval):
		case <-ctx.Done():
		case <-w.store.ended.Done():
		}
	}
	return nil
}

// heartbeat yields a heartbeat if one is due, and reports whether the sequence goes on.
func (w *watcher) heartbeat(yield func(relayer.RecordChange, error) bool) bool {
	if time.Since(w.yielded) < heartbeatInterval || !w.complete.After(w.last) {
		return true
	}
	w.last, w.yielded = w.complete, time.Now()
	return yield(relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: w.seen, Time: w.last}, nil)
}

// read returns the changes after the last one seen: from the feed if it still has
// them, else from the database. It returns ErrGap if there is a gap before them and the
// server can be reached, so that the caller can read all relayers.
func (w *watcher) read(ctx context.Context) (found batch, err error) {
	if w.store.ended.Err() != nil {
		return batch{}, errClosed
	}
	if found, failing, ok := w.store.feed.after(w.seen); ok {
		w.complete, w.failing = found.complete, failing
		return found, nil
	}
	err = w.fromDatabase(ctx, func(ctx context.Context) (err error) {
		found, err = w.store.changesAfter(ctx, w.seen)
		return err
	})
	if err == nil {
		w.complete = found.date(w.complete)
	}
	return found, err
}

// fromDatabase notes since when reads fail.
func (w *watcher) fromDatabase(ctx context.Context, read func(context.Context) error) error {
	begun := time.Now()
	if w.failing.IsZero() {
		w.failing = begun
	}
	reading, cancel := context.WithDeadline(ctx, w.failing.Add(unreachableLimit))
	defer cancel()
	err := read(reading)
	if err == nil || errors.Is(err, relayer.ErrGap) {
		w.failing = time.Time{}
	}
	return err
}
