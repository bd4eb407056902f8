package memory

import (
	"context"

	"github.com/go-relayer/relayer"
)

var _ relayer.DocumentStore = (*Store)(nil)

// AppendDocument appends the document of the record to dst and returns its
// revision, or [relayer.ErrNotFound].
func (s *Store) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	if err := ctx.Err(); err != nil {
		return dst, 0, err
	}
	s.mu.RLock()
	found := s.byID[id]
	if found == nil {
		s.mu.RUnlock()
		return dst, 0, relayer.ErrNotFound
	}
	document, revision := found.rec.Document, found.rec.Revision
	s.mu.RUnlock()
	// Stored bytes never change, so that they can be copied after the lock is
	// released.
	return append(dst, document...), revision, nil
}

// AppendDocuments appends up to limit documents from offset on, oldest first,
// separated by commas, and returns the number of all records.
func (s *Store) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	if err := ctx.Err(); err != nil {
		return dst, 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	total := len(s.byID)
	if offset < 0 || offset >= total || limit <= 0 {
		return dst, total, nil
	}
	next := s.order.at(offset)
	for i := range min(limit, total-offset) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, next.rec.Document...)
		next = next.next
	}
	return dst, total, nil
}
