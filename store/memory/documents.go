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
	if extended, total, ok := s.joinedPage(dst, offset, limit); ok {
		return extended, total, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	total := len(s.byID)
	limit = onPage(total, offset, limit)
	s.order.join(offset, limit)
	extended, _ := s.order.appendDocuments(dst, offset, limit)
	return extended, total, nil
}

// joinedPage appends the documents of a page, or returns false if some are not joined.
func (s *Store) joinedPage(dst []byte, offset, limit int) (extended []byte, total int, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	total = len(s.byID)
	extended, ok = s.order.appendDocuments(dst, offset, onPage(total, offset, limit))
	return extended, total, ok
}

// onPage returns the number of records on a page.
func onPage(total, offset, limit int) int {
	if offset < 0 || offset >= total || limit <= 0 {
		return 0
	}
	return min(limit, total-offset)
}
