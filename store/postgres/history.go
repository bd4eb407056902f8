package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/go-relayer/relayer"
)

// History returns changes of all instances, newest first, without the private parts of their
// records. They are stored for [WithHistoryRetention]. Imported records have no change in it.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) (found []relayer.RecordChange, err error) {
	if s.opts.historyRetention == 0 {
		return nil, fmt.Errorf("postgres: the store retains no history: %w", errors.ErrUnsupported)
	}
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

func readHistory(rows pgx.Rows) (found []relayer.RecordChange, err error) {
	for rows.Next() {
		var row row
		var kind string
		var oldText pgtype.Text
		change := relayer.RecordChange{}
		if err := rows.Scan(append([]any{&kind, &change.OldTerms, &oldText}, row.columns()...)...); err != nil {
			return nil, err
		}
		change.Kind, change.Record, change.OldText = relayer.ChangeKind(kind), row.record(), oldText.String
		change.Record.Private = nil
		found = append(found, change)
	}
	return found, rows.Err()
}
