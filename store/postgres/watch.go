package postgres

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-relayer/relayer"
)

// imported is the kind of the change that an import is recorded as.
const imported relayer.ChangeKind = "imported"

// Watch returns the changes made by all instances, in the order of their commits,
// until ctx is done. They begin with the call, or after a position, which may come
// from another instance. While the server cannot be reached, Watch waits, and then
// returns the changes made meanwhile.
//
// The sequence ends with [relayer.ErrGap] at imported records, and at changes that were
// pruned before they were read (see [WithChangeRetention]). It also ends with ErrGap if the
// position is not in the history of this database, as after the restore of a backup, and
// if the server could not be reached at the call. It ends with [relayer.ErrUnavailable] if
// the Store is closed, or if the server will never return the changes, for example if a
// privilege is missing. The sequence can be ranged over once.
//
// Any number of watchers cost the server one reader per Store.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	w := &watcher{store: s}
	s.feed.join()
	leave := context.AfterFunc(ctx, s.feed.leave)
	w.start(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		defer func() {
			if leave() {
				s.feed.leave()
			}
		}()
		w.run(ctx, yield)
	}
}

// watcher is one consumer of changes, which reads at its own pace. Between reads it
// holds only the mark of the last change that it has seen.
type watcher struct {
	store *Store
	seen  *mark          // nil if start could not determine it: then there is a gap
	found []storedChange // the next changes, if start has read them
}

func (w *watcher) start(ctx context.Context, after string) {
	if after == "" {
		if last, err := w.store.lastChange(ctx); err == nil {
			w.seen = &last
		}
		return
	}
	if seen, ok := parseMark(after); ok {
		w.seen = &seen
		w.found, _ = w.read(ctx)
	}
}

func (w *watcher) run(ctx context.Context, yield func(relayer.RecordChange, error) bool) {
	for ctx.Err() == nil {
		// Before the read, so that what is added after it is noticed.
		next := w.store.feed.next()
		changes, err := w.read(ctx)
		if errors.Is(err, relayer.ErrGap) {
			yield(relayer.RecordChange{}, relayer.ErrGap)
			return
		}
		if err != nil && isPermanent(err) {
			yield(relayer.RecordChange{}, unavailable(err))
			return
		}
		for _, change := range changes {
			if ctx.Err() != nil || !change.yield(yield) {
				return
			}
			seen := change.mark
			w.seen = &seen
		}
		if len(changes) == 0 {
			w.sleep(ctx, next)
		}
	}
}

// yield reports whether the sequence goes on.
func (c storedChange) yield(yield func(relayer.RecordChange, error) bool) bool {
	if c.Kind == imported {
		yield(relayer.RecordChange{}, relayer.ErrGap)
		return false
	}
	return yield(c.RecordChange, nil)
}

func (w *watcher) sleep(ctx context.Context, next <-chan struct{}) {
	select {
	case <-next:
	case <-time.After(pollInterval):
	case <-ctx.Done():
	case <-w.store.ended.Done():
	}
}

// read returns the changes after the last one seen: from the feed if it still has
// them, else from the database. It returns ErrGap if there is a gap before them and the
// server can be reached, so that the caller can read all relayers.
func (w *watcher) read(ctx context.Context) ([]storedChange, error) {
	if w.store.ended.Err() != nil {
		return nil, errClosed
	}
	if w.seen == nil {
		if _, err := w.store.lastChange(ctx); err != nil {
			return nil, err
		}
		return nil, relayer.ErrGap
	}
	if len(w.found) > 0 {
		found := w.found
		w.found = nil
		return found, nil
	}
	if changes, ok := w.store.feed.after(*w.seen); ok {
		return changes, nil
	}
	return w.store.changesAfter(ctx, *w.seen)
}
