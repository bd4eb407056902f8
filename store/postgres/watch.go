package postgres

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

var _ relayer.WatchStore = (*Store)(nil)

// pollInterval is how often those who watch look for changes of which nobody has
// told them: a notification can be lost, and a proxy between can swallow them
// all.
const pollInterval = time.Second

// Watch returns the changes made by all instances from the call on, in the order
// of their commits, until ctx is done. While the server is out of reach there are
// none, and afterwards those that were made meanwhile. It gives
// [relayer.ErrMissed] in place of what was forgotten before it was asked for
// (see [WithChangeRetention]) and of records that were taken over by Import, and
// ends with [relayer.ErrUnavailable] where the Store is closed. The sequence can
// be ranged over once.
func (s *Store) Watch(ctx context.Context) iter.Seq2[relayer.RecordChange, error] {
	w := &watch{store: s, position: -1}
	s.listener.join()
	leave := context.AfterFunc(ctx, s.listener.leave)
	// Where this fails the changes from here on are not known to be all.
	w.missed = w.begin(ctx) != nil
	return func(yield func(relayer.RecordChange, error) bool) {
		defer func() {
			if leave() {
				s.listener.leave()
			}
		}()
		w.run(ctx, yield)
	}
}

// watch is one consumer, who comes for the changes at a pace of its own. All it
// costs is its place in them.
type watch struct {
	store    *Store
	position int64 // the number of the last change seen
	missed   bool
}

func (w *watch) begin(ctx context.Context) error {
	return w.store.read(ctx, w.store.sql.position, nil, func(rows pgx.Rows) error {
		if rows.Next() {
			if err := rows.Scan(&w.position); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

func (w *watch) run(ctx context.Context, yield func(relayer.RecordChange, error) bool) {
	for ctx.Err() == nil {
		// Before the look, so that what is written after it is not slept through.
		next := w.store.listener.next()
		changes, err := w.look(ctx)
		if errors.Is(err, errClosed) {
			yield(relayer.RecordChange{}, err)
			return
		}
		if err == nil && w.missed {
			w.missed = false
			if !yield(relayer.RecordChange{}, relayer.ErrMissed) {
				return
			}
		}
		for _, change := range changes {
			if ctx.Err() != nil || !yield(change, nil) {
				return
			}
		}
		if len(changes) == 0 {
			w.sleep(ctx, next)
		}
	}
}

func (w *watch) sleep(ctx context.Context, next <-chan struct{}) {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-next:
	case <-timer.C:
	case <-ctx.Done():
	case <-w.store.ended.Done():
	}
}

// look reads what follows on the position, and moves it.
func (w *watch) look(ctx context.Context) ([]relayer.RecordChange, error) {
	if w.position < 0 {
		return nil, w.begin(ctx)
	}
	var page changesPage
	err := w.store.read(ctx, w.store.sql.changes, []any{w.position}, func(rows pgx.Rows) (err error) {
		page, err = readChanges(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	// A position beyond the last is of a database that was since restored from a
	// backup, or lost its last commits to a failover.
	if w.position < page.forgotten || w.position > page.last {
		w.missed, w.position = true, page.last
		return nil, nil
	}
	if page.changes != nil {
		w.position = page.read
	}
	return page.changes, nil
}

// changesPage is what one look finds.
type changesPage struct {
	forgotten int64 // up to this number changes are kept no more
	last      int64 // the number of the last change made
	read      int64 // the number of the last change of the page
	changes   []relayer.RecordChange
}

func readChanges(rows pgx.Rows) (changesPage, error) {
	var page changesPage
	for rows.Next() {
		var row row
		var number *int64
		var kind *string
		if err := rows.Scan(append([]any{&page.forgotten, &page.last, &number, &kind}, row.fields()...)...); err != nil {
			return changesPage{}, err
		}
		if number != nil {
			page.read = *number
			page.changes = append(page.changes, relayer.RecordChange{Kind: relayer.ChangeKind(*kind), Record: row.record()})
		}
	}
	return page, rows.Err()
}
