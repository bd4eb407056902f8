package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
)

var _ relayer.DocumentStore = (*Store)(nil)

// AppendDocument appends the document of the record to dst and returns its
// revision, or [relayer.ErrNotFound].
func (s *Store) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	extended := dst
	var revision uint64
	err := s.read(ctx, func(tx *bbolt.Tx) error {
		rec, err := s.lookup(tx, id)
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
// with a comma between each two, and returns the number of all records.
func (s *Store) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	extended := dst
	var total int
	err := s.read(ctx, func(tx *bbolt.Tx) error {
		alive, err := s.liveIn(tx)
		if err != nil {
			return damagedRead(err)
		}
		total = alive.total()
		separator := ""
		return walkPage(tx, alive, offset, limit, func(rec stored) {
			extended = append(append(extended, separator...), rec.document...)
			separator = ","
		})
	})
	if err != nil {
		return dst, 0, err
	}
	return extended, total, nil
}
