package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

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
	if err := rows.Scan(row.fields()...); err != nil {
		return relayer.Record{}, err
	}
	return row.record(), rows.Err()
}

// errNegativeTotal means that the counts are damaged.
var errNegativeTotal = fmt.Errorf("postgres: %w: the number of relayers is negative", relayer.ErrCorrupt)

// page reads the rows of a page. An empty page is one row with only the total.
func page(rows pgx.Rows) (recs []relayer.Record, total int, err error) {
	for rows.Next() {
		var row row
		if err := rows.Scan(append([]any{&total}, row.fields()...)...); err != nil {
			return nil, 0, err
		}
		if total < 0 {
			return nil, 0, errNegativeTotal
		}
		if row.id != nil {
			recs = append(recs, row.record())
		}
	}
	return recs, total, rows.Err()
}

// row is a record as it is read. All columns are NULL in an empty page.
type row struct {
	id                       *string
	revision                 *int64
	claim, document, private []byte
	terms                    []string
}

func (r *row) fields() []any {
	return []any{&r.id, &r.revision, &r.claim, &r.terms, &r.document, &r.private}
}

func (r *row) record() relayer.Record {
	return relayer.Record{
		ID:       *r.id,
		Revision: uint64(*r.revision),
		Claim:    string(r.claim),
		Terms:    r.terms,
		Document: r.document,
		Private:  r.private,
	}
}
