package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

var _ relayer.DocumentStore = (*Store)(nil)

// AppendDocument appends the document of a record to dst and returns the revision of
// the record. It returns [relayer.ErrNotFound] if there is no such record.
func (s *Store) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	if !isStorable(id) {
		return dst, 0, s.notFound(ctx)
	}
	if err := s.confirm(ctx, id); err != nil {
		return dst, 0, err
	}
	var extended appender
	var revision int64
	err := s.read(ctx, s.sql.document, []any{id}, func(rows pgx.Rows) error {
		extended = appender{bytes: dst}
		if !rows.Next() {
			if rows.Err() != nil {
				return rows.Err()
			}
			return relayer.ErrNotFound
		}
		if err := rows.Scan(&revision, &extended); err != nil {
			return err
		}
		return rows.Err()
	})
	if err != nil {
		return dst, 0, err
	}
	return extended.bytes, uint64(revision), nil
}

// AppendDocuments appends up to limit documents from offset on, oldest first and
// separated by commas, and returns the number of all records.
func (s *Store) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	var extended appender
	var total int
	err := s.read(ctx, s.sql.documents, []any{int64(offset), int64(limit)}, func(rows pgx.Rows) error {
		extended = appender{bytes: dst}
		for rows.Next() {
			if err := rows.Scan(&total, &extended); err != nil {
				return err
			}
			if total < 0 {
				return errNegativeTotal
			}
			extended.separator = ","
		}
		return rows.Err()
	})
	if err != nil {
		return dst, 0, err
	}
	return extended.bytes, total, nil
}

// appender copies a document from the buffer of the driver to that of the caller.
type appender struct {
	bytes     []byte
	separator string
}

// ScanBytes is called by the driver. The bytes are valid until it returns, and nil for
// NULL.
func (a *appender) ScanBytes(document []byte) error {
	if document != nil {
		a.bytes = append(append(a.bytes, a.separator...), document...)
	}
	return nil
}
