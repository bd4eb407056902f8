package bolt

import (
	"context"

	"github.com/go-relayer/relayer"
)

var _ relayer.DocumentStore = (*Store)(nil)

// AppendDocument appends the document of the record to dst and returns its
// revision. It returns the errors of [Store.Get].
func (s *Store) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	extended := dst
	var revision uint64
	err := s.read(ctx, func(snap *snapshot) error {
		rec, err := snap.lookup(id)
		if err != nil {
			return err
		}
		extended = append(dst, rec.document...)
		revision = rec.revision
		return nil
	})
	if err != nil {
		return dst, 0, err
	}
	return extended, revision, nil
}

// AppendDocuments appends up to limit documents from offset on, oldest first,
// separated by commas, and returns the total number of records.
func (s *Store) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	extended := dst
	var total int
	err := s.read(ctx, func(snap *snapshot) error {
		total = snap.counts.total()
		separator := ""
		return snap.walkPage(ctx, offset, limit, func(rec stored) {
			extended = append(append(extended, separator...), rec.document...)
			separator = ","
		})
	})
	if err != nil {
		return dst, 0, err
	}
	return extended, total, nil
}
