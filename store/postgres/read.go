package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/go-relayer/relayer"
)

// read runs one statement and passes its rows to use. It returns the error of the context,
// ErrNotFound of use, errNoHistory, or one of failed.
func (s *Store) read(ctx context.Context, sql string, args []any, use func(pgx.Rows) error) error {
	err := s.tryRead(ctx, sql, args, use)
	if err == nil || err == ctx.Err() || errors.Is(err, relayer.ErrNotFound) {
		return err
	}
	if hasCode(err, noHistory) {
		return errNoHistory
	}
	return failed(err)
}

// tryRead repeats a read that fails for a transient reason. It returns refusals by the server
// unchanged.
func (s *Store) tryRead(ctx context.Context, sql string, args []any, use func(pgx.Rows) error) (err error) {
	for range s.attempts {
		if err := s.stopped(ctx); err != nil {
			return err
		}
		err = s.readOnce(ctx, sql, args, use)
		if err == nil || errors.Is(err, relayer.ErrNotFound) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, ok := errors.AsType[noConnection](err); ok || !isTransient(err) {
			return err
		}
	}
	return err
}

func (s *Store) readOnce(ctx context.Context, sql string, args []any, use func(pgx.Rows) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	rows, err := conn.Query(limited, sql, args...)
	if err == nil {
		err = use(rows)
		rows.Close()
	}
	release(conn, err)
	return s.causeOf(limited, err)
}

func onlyRecord(rows pgx.Rows) (relayer.Record, error) {
	rec, err := pgx.CollectExactlyOneRow(rows, func(from pgx.CollectableRow) (relayer.Record, error) {
		var row row
		err := from.Scan(row.columns()...)
		return row.record(), err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = relayer.ErrNotFound
	}
	return rec, err
}

// scanPage reads the rows of a page. Each has the total and the position, which are read from
// the first. An empty page is one row without a record.
func scanPage(rows pgx.Rows, columns func(*row) []any) (found relayer.Listing, last mark, err error) {
	var next row
	targets := append([]any{&found.Total, &last.number, &last.at}, columns(&next)...)
	for rows.Next() {
		next = row{} // which does not share memory with the one before
		if err := rows.Scan(targets...); err != nil {
			return relayer.Listing{}, last, err
		}
		if next.id.Valid {
			found.Records = append(found.Records, next.record())
		}
		targets[0], targets[1], targets[2] = nil, nil, nil
	}
	found.Position = last.position()
	return found, last, rows.Err()
}

// row is a record as it is read. All columns are NULL in an empty page.
type row struct {
	id, text                       pgtype.Text
	revision, sequence             pgtype.Int8
	claim, note, document, private []byte
	terms                          []string
}

// columns are those of recordColumns.
func (r *row) columns() []any {
	return []any{&r.id, &r.revision, &r.sequence, &r.claim, &r.terms, &r.text, &r.note, &r.document, &r.private}
}

// documentColumns are those of the statement for documents only.
func (r *row) documentColumns() []any {
	return []any{&r.id, &r.revision, &r.sequence, &r.note, &r.document}
}

func (r *row) record() relayer.Record {
	return relayer.Record{
		ID:       r.id.String,
		Revision: uint64(r.revision.Int64),
		Sequence: uint64(r.sequence.Int64),
		Claim:    string(r.claim),
		Terms:    r.terms,
		Text:     r.text.String,
		Document: r.document,
		Private:  r.private,
		Note:     r.note,
	}
}
