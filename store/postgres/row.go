package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/go-relayer/relayer"
)

func onlyRecord(rows pgx.Rows) (relayer.Record, error) {
	if !rows.Next() {
		if rows.Err() != nil {
			return relayer.Record{}, rows.Err()
		}
		return relayer.Record{}, relayer.ErrNotFound
	}
	var row row
	if err := rows.Scan(row.columns()...); err != nil {
		return relayer.Record{}, err
	}
	return row.record(), rows.Err()
}

// errNegativeTotal means that the counts are damaged.
var errNegativeTotal = fmt.Errorf("postgres: %w: the number of relayers is negative", relayer.ErrCorrupt)

// scanPage reads the rows of a page, and calls add for each record that is in the row. An
// empty page is one row with only the total.
func scanPage(rows pgx.Rows, row *row, columns []any, add func()) (total int, err error) {
	columns = append([]any{&total}, columns...)
	for rows.Next() {
		row.reset()
		if err := rows.Scan(columns...); err != nil {
			return 0, err
		}
		if total < 0 {
			return 0, errNegativeTotal
		}
		if row.id.Valid {
			add()
		}
	}
	return total, rows.Err()
}

// row is a record as it is read. All columns are NULL in an empty page.
type row struct {
	id                       pgtype.Text
	revision                 pgtype.Int8
	claim, document, private []byte
	terms                    []string
}

// reset makes room for the next record, which does not share memory with the last one.
func (r *row) reset() { *r = row{} }

func (r *row) columns() []any {
	return []any{&r.id, &r.revision, &r.claim, &r.terms, &r.document, &r.private}
}

func (r *row) documentColumns() []any { return []any{&r.id, &r.revision, &r.document} }

func (r *row) record() relayer.Record {
	return relayer.Record{
		ID:       r.id.String,
		Revision: uint64(r.revision.Int64),
		Claim:    string(r.claim),
		Terms:    r.terms,
		Document: r.document,
		Private:  r.private,
	}
}

func (r *row) toDocument() relayer.Document {
	return relayer.Document{ID: r.id.String, Revision: uint64(r.revision.Int64), JSON: r.document}
}
