package memory

import (
	"context"
	"fmt"
	"math"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/limits"
)

var _ relayer.ImportStore = (*Store)(nil)

// Import adds the records after all others, with the revisions given: all of them or
// none. It returns [relayer.ErrExists] if an ID is taken or occurs twice, and
// [relayer.ErrClaimed] if a claim is held or occurs twice.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	added := make([]*entry, len(records))
	for i, rec := range records {
		if err := limits.CheckImport(rec, math.MaxInt); err != nil {
			return importError(rec, err)
		}
		added[i] = &entry{rec: separateCopyOf(rec)}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.checkFree(records); err != nil {
		return err
	}
	for _, next := range added {
		s.add(next)
		s.revision = max(s.revision, next.rec.Revision)
	}
	return nil
}

// checkFree returns an error if an ID or a claim is in the store or occurs twice.
func (s *Store) checkFree(records []relayer.Record) error {
	ids := make(map[string]bool, len(records))
	claims := make(map[string]bool)
	for _, rec := range records {
		if s.byID[rec.ID] != nil || ids[rec.ID] {
			return importError(rec, relayer.ErrExists)
		}
		ids[rec.ID] = true
		if rec.Claim == "" {
			continue
		}
		if s.claims[rec.Claim] != nil || claims[rec.Claim] {
			return importError(rec, relayer.ErrClaimed)
		}
		claims[rec.Claim] = true
	}
	return nil
}

func importError(rec relayer.Record, err error) error {
	return fmt.Errorf("import %q: %w", rec.ID, err)
}
