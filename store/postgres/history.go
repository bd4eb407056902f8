package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

// errNoHistory matches [errors.ErrUnsupported].
var errNoHistory = fmt.Errorf("postgres: the store retains no history: %w", errors.ErrUnsupported)

// History returns changes of all instances, newest first, without the private parts of their
// records. They are stored as long as the database says: see [WithHistory]. Imported records have
// no change in it. The error matches [errors.ErrUnsupported] if the database retains no history.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) (found []relayer.RecordChange, err error) {
	if !isStorable(query.ID) {
		return nil, s.stopped(ctx)
	}
	before := int64(math.MaxInt64)
	if query.Before > 0 && query.Before < math.MaxInt64 {
		before = int64(query.Before)
	}
	err = s.read(ctx, s.sql.history, []any{query.ID, before, int64(query.Limit)}, func(rows pgx.Rows) (err error) {
		found, err = readHistory(rows)
		return err
	})
	return found, err
}

// ImportHistory adds changes of another store to the history, in ascending order of their
// revisions, all or none. Watchers receive [relayer.ErrGap]. It returns
// [relayer.ErrConflict] if a revision is not greater than all before. The error matches
// [errors.ErrUnsupported] if the store retains no history.
func (s *Store) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	columns, err := pastColumnsOf(changes)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return s.stopped(ctx)
	}
	return s.write(ctx, columns.size, change{
		ask: func(batch *pgx.Batch) {
			batch.Queue(s.sql.importPast, columns.revisions, columns.kinds, columns.sequences, columns.ids, columns.claims,
				columns.terms, columns.oldTerms, columns.texts, columns.oldTexts, columns.notes, columns.documents)
		},
		read: func(results pgx.BatchResults) (outcome, error) {
			var last *int64
			var isNone, isDropped bool
			if err := results.QueryRow().Scan(&last, nil, &isNone, &isDropped); err != nil {
				return outcome{}, err
			}
			switch {
			case isNone:
				return outcome{refused: errNoHistory}, nil
			case isDropped:
				return outcome{}, errDropped
			case last == nil:
				return outcome{refused: relayer.ErrConflict}, nil
			}
			return outcome{number: *last}, nil
		},
	}, columns.ids...)
}

// pastColumns are the changes of an import into the history, column by column.
type pastColumns struct {
	importColumns
	kinds, oldTexts []string
	oldTerms        []string // each the text of an array
	sequences       []int64
}

func pastColumnsOf(changes []relayer.RecordChange) (columns pastColumns, err error) {
	records := make([]relayer.Record, len(changes))
	for i, c := range changes {
		if i > 0 && c.Record.Revision <= changes[i-1].Record.Revision {
			return columns, relayer.ErrConflict
		}
		before := relayer.Record{ID: c.Record.ID, Terms: c.OldTerms, Text: c.OldText}
		if err := checkLimits(before); err != nil {
			return columns, err
		}
		if c.Kind == relayer.ChangeHeartbeat {
			return columns, errors.New("postgres: a heartbeat is not a change")
		}
		records[i] = c.Record
		records[i].Private = nil
		columns.kinds = append(columns.kinds, string(c.Kind))
		columns.oldTexts = append(columns.oldTexts, c.OldText)
		columns.oldTerms = append(columns.oldTerms, arrayOf(c.OldTerms))
		columns.sequences = append(columns.sequences, signed(c.Record.Sequence))
	}
	columns.importColumns, err = importColumnsOf(records)
	return columns, err
}

func readHistory(rows pgx.Rows) (found []relayer.RecordChange, err error) {
	for rows.Next() {
		change, err := scanChange(rows)
		if err != nil {
			return nil, err
		}
		change.Record.Private = nil
		found = append(found, change)
	}
	return found, rows.Err()
}
