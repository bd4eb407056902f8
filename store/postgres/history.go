package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/go-relayer/relayer"
)

// errNoHistory matches [errors.ErrUnsupported].
var errNoHistory = fmt.Errorf("postgres: the store retains no history: %w", errors.ErrUnsupported)

// History returns changes of all instances, newest first, without the private parts of their
// records. They are stored as long as the database says: see [WithHistory]. Imports of records
// are not in it. The error matches [errors.ErrUnsupported] if the database retains no history.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) (found []relayer.RecordChange, err error) {
	if !isStorable(query.ID) {
		return nil, s.stopped(ctx)
	}
	before := int64(min(cmp.Or(query.Before, math.MaxInt64), math.MaxInt64))
	err = s.read(ctx, s.in(sqlHistory), []any{query.ID, before, int64(query.Limit)}, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (relayer.RecordChange, error) {
			var changedAt pgtype.Int8
			change, err := scanChange(row, &changedAt)
			if changedAt.Valid {
				change.Time = time.UnixMicro(changedAt.Int64)
			}
			return change, err
		})
		return err
	})
	return found, err
}

// ImportHistory adds changes of another store to the history, in ascending order of their
// revisions, all or none. Watchers receive [relayer.ErrGap]. It returns
// [relayer.ErrConflict] if a revision is not greater than all before. The error matches
// [errors.ErrUnsupported] if the store retains no history.
func (s *Store) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	records := make([]relayer.Record, len(changes))
	for i, c := range changes {
		if i > 0 && c.Record.Revision <= changes[i-1].Record.Revision {
			return relayer.ErrConflict
		}
		if err := checkLimits(relayer.Record{ID: c.Record.ID, Terms: c.OldTerms, Text: c.OldText}); err != nil {
			return err
		}
		switch c.Kind {
		case relayer.ChangeCreated, relayer.ChangeUpdated, relayer.ChangeDeleted:
		default:
			return fmt.Errorf("postgres: import %q: %q is not a kind of change", c.Record.ID, c.Kind)
		}
		records[i] = c.Record
		records[i].Private = nil
	}
	return s.importAll(ctx, records, change{
		ask: func(batch *pgx.Batch) {
			for i, c := range changes {
				rec := records[i]
				batch.Queue(s.in(sqlImportChange), rec.ID, signed(rec.Revision), string(c.Kind), signed(rec.Sequence), claimParameter(rec.Claim),
					notNull(rec.Terms), notNull(c.OldTerms), rec.Text, c.OldText, notNull(rec.Note), notNull(rec.Document))
			}
			batch.Queue(s.in(sqlImportedChanges))
		},
		read: func(results pgx.BatchResults) (o outcome, err error) {
			for range changes {
				var isNone, isLate bool
				var number *string
				if err := results.QueryRow().Scan(&isNone, &isLate, &number); err != nil {
					return outcome{}, err
				}
				switch {
				case isNone:
					return outcome{}, importRefusal{errNoHistory}
				case isLate:
					return outcome{}, importRefusal{relayer.ErrConflict}
				case number == nil:
					return outcome{}, errDropped
				}
			}
			o.number, err = readNumber(results)
			return o, err
		},
	})
}
