package postgres

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/go-relayer/relayer"
)

var _ relayer.WatchStore = (*Store)(nil)

// imported is the kind of the change that an import is recorded as.
const imported relayer.ChangeKind = "imported"

// Watch returns the changes made by all instances, in the order of their commits,
// until ctx is done. They begin with the call, or after a position, which may come
// from another instance. While the server cannot be reached, Watch waits, and then
// returns the changes made meanwhile.
//
// It yields [relayer.ErrGap] in place of imported records, and of changes that were
// pruned before they were read (see [WithChangeRetention]). It also yields ErrGap after
// a position that is not in the history of this database, as after the restore of a
// backup. It ends with [relayer.ErrUnavailable] if the Store is closed, or if the server
// will never return the changes, for example if a privilege is missing. The sequence can
// be ranged over once.
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
	store  *Store
	seen   *mark          // nil until start or run has determined it
	hasGap bool           // whether there is a gap before the next change
	found  []storedChange // the next changes, if start has read them
}

// start determines the first change. If it fails while the server cannot be reached, run
// continues with it.
func (w *watcher) start(ctx context.Context, after string) {
	seen, ok := parseMark(after)
	if !ok {
		// If this fails, changes from here on may be lost.
		w.hasGap = w.begin(ctx) != nil || after != ""
		return
	}
	w.seen = &seen
	w.found, _ = w.read(ctx)
}

func (w *watcher) begin(ctx context.Context) error {
	last, err := w.store.lastChange(ctx)
	if err == nil {
		w.seen = &last
	}
	return err
}

func (w *watcher) run(ctx context.Context, yield func(relayer.RecordChange, error) bool) {
	for ctx.Err() == nil {
		// Before the read, so that what is added after it is noticed.
		next := w.store.feed.next()
		changes, err := w.read(ctx)
		if err != nil && isPermanent(err) {
			yield(relayer.RecordChange{}, unavailable(err))
			return
		}
		if err == nil && w.hasGap {
			w.hasGap = false
			if !yield(relayer.RecordChange{}, relayer.ErrGap) {
				return
			}
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

// yield yields a copy that is the consumer's own, or ErrGap for an import.
func (c storedChange) yield(yield func(relayer.RecordChange, error) bool) bool {
	if c.Kind == imported {
		return yield(relayer.RecordChange{}, relayer.ErrGap)
	}
	change := c.RecordChange
	change.Record.Document = slices.Clone(change.Record.Document)
	change.Record.Private = slices.Clone(change.Record.Private)
	return yield(change, nil)
}

func (w *watcher) sleep(ctx context.Context, next <-chan struct{}) {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-next:
	case <-timer.C:
	case <-ctx.Done():
	case <-w.store.ended.Done():
	}
}

// read returns the changes after the last one seen: from the feed if it still has
// them, else from the database.
func (w *watcher) read(ctx context.Context) ([]storedChange, error) {
	if w.store.ended.Err() != nil {
		return nil, errClosed
	}
	if w.seen == nil {
		return nil, w.begin(ctx)
	}
	if len(w.found) > 0 {
		found := w.found
		w.found = nil
		return found, nil
	}
	if changes, ok := w.store.feed.after(*w.seen); ok {
		return changes, nil
	}
	found, err := w.store.changesAfter(ctx, *w.seen)
	if err == nil && found.isCut {
		w.hasGap = true
		err = w.begin(ctx)
	}
	return found.changes, err
}
