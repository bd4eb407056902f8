package postgres

import (
	"context"
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
// ends with [relayer.ErrUnavailable] where the Store is closed, or where what is
// asked for will never be answered, as for want of a privilege. The sequence can
// be ranged over once.
func (s *Store) Watch(ctx context.Context) iter.Seq2[relayer.RecordChange, error] {
	w := &watch{store: s}
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
	store  *Store
	seen   *mark // nil until it is known where to begin
	missed bool
}

// mark is the last change seen. Its number alone would not tell it from another
// change, where a backup was restored or a failover has lost the last commits,
// and numbers are given again.
type mark struct {
	number int64
	at     *int64 // in microseconds since 1970; nil if the change is not stored
}

func (w *watch) begin(ctx context.Context) error {
	return w.store.tryRead(ctx, w.store.sql.lastChange, nil, func(rows pgx.Rows) error {
		var last mark
		for rows.Next() {
			if err := rows.Scan(&last.number, &last.at); err != nil {
				return err
			}
		}
		if rows.Err() == nil {
			w.seen = &last
		}
		return rows.Err()
	})
}

func (w *watch) run(ctx context.Context, yield func(relayer.RecordChange, error) bool) {
	for ctx.Err() == nil {
		// Before the look, so that what is written after it is not slept through.
		next := w.store.listener.next()
		changes, err := w.look(ctx)
		if err != nil && isLasting(err) {
			yield(relayer.RecordChange{}, unavailable(err))
			return
		}
		if err == nil && w.missed {
			w.missed = false
			if !yield(relayer.RecordChange{}, relayer.ErrMissed) {
				return
			}
		}
		for _, change := range changes {
			if ctx.Err() != nil || !yieldChange(change, yield) {
				return
			}
		}
		if len(changes) == 0 {
			w.sleep(ctx, next)
		}
	}
}

// imported is the kind of the change that an import is recorded as.
const imported relayer.ChangeKind = "imported"

// yieldChange yields a change, or ErrMissed for an import.
func yieldChange(change relayer.RecordChange, yield func(relayer.RecordChange, error) bool) bool {
	if change.Kind == imported {
		return yield(relayer.RecordChange{}, relayer.ErrMissed)
	}
	return yield(change, nil)
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

// look reads what follows on the last change seen.
func (w *watch) look(ctx context.Context) ([]relayer.RecordChange, error) {
	if w.seen == nil {
		return nil, w.begin(ctx)
	}
	var found look
	err := w.store.tryRead(ctx, w.store.sql.changes, []any{w.seen.number, w.seen.at}, func(rows pgx.Rows) (err error) {
		found, err = readChanges(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	if found.isCut {
		w.missed = true
		return nil, w.begin(ctx)
	}
	if found.changes != nil {
		w.seen = &found.last
	}
	return found.changes, nil
}

// look is what one look finds.
type look struct {
	isCut   bool // what follows on the last change seen is not known
	last    mark
	changes []relayer.RecordChange
}

func readChanges(rows pgx.Rows) (look, error) {
	var found look
	for rows.Next() {
		var row row
		var number *int64
		var at *int64
		var kind *string
		if err := rows.Scan(append([]any{&found.isCut, &number, &at, &kind}, row.fields()...)...); err != nil {
			return look{}, err
		}
		if number != nil {
			found.last = mark{*number, at}
			found.changes = append(found.changes, relayer.RecordChange{Kind: relayer.ChangeKind(*kind), Record: row.record()})
		}
	}
	return found, rows.Err()
}
