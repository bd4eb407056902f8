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
		var isCached bool
		if extended, revision, isCached = s.cache.appendDocument(snap, dst, id); isCached {
			return nil
		}
		rec, err := snap.lookup(id)
		if err != nil {
			return err
		}
		if s.cache.admits() {
			s.cache.add(snap, rec)
		}
		extended, revision = append(dst, rec.document...), rec.revision
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
		var isCached bool
		if extended, isCached = s.cachedPage(snap, dst, offset, limit); isCached {
			return nil
		}
		admitted, separator := s.cache.admits(), ""
		err := snap.walkPage(ctx, offset, limit, func(rec stored) {
			if admitted {
				s.cache.add(snap, rec)
			}
			extended = append(append(extended, separator...), rec.document...)
			separator = ","
		})
		if err == nil && admitted {
			s.cache.join(snap, snap.counts.sequencesFrom(offset), onPage(total, offset, limit))
		}
		return err
	})
	if err != nil {
		return dst, 0, err
	}
	return extended, total, nil
}

// cachedPage appends the documents of a page if all are cached and joined.
func (s *Store) cachedPage(snap *snapshot, dst []byte, offset, limit int) ([]byte, bool) {
	records := onPage(snap.counts.total(), offset, limit)
	if records == 0 {
		return dst, true
	}
	return s.cache.appendPage(snap, dst, snap.counts.sequencesFrom(offset), records)
}
