package memory

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
)

var _ relayer.ImportStore = (*Store)(nil)

// Import adds the records after all others, with the revisions given: all of
// them or none. It returns [relayer.ErrExists] where an id is taken or comes
// twice, and [relayer.ErrClaimed] where a claim is held or comes twice.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	made := make([]*entry, len(records))
	for i, rec := range records {
		if err := keepsImportLimits(rec); err != nil {
			return refused(rec, err)
		}
		made[i] = &entry{rec: detached(rec)}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.allFree(records); err != nil {
		return err
	}
	for _, next := range made {
		s.add(next)
		s.revision = max(s.revision, next.rec.Revision)
	}
	return nil
}

// allFree refuses records of which one has an id or a claim that the store, or
// a record before it, has already.
func (s *Store) allFree(records []relayer.Record) error {
	ids := make(map[string]bool, len(records))
	claims := make(map[string]bool)
	for _, rec := range records {
		if s.byID[rec.ID] != nil || ids[rec.ID] {
			return refused(rec, relayer.ErrExists)
		}
		ids[rec.ID] = true
		if rec.Claim == "" {
			continue
		}
		if s.claims[rec.Claim] != nil || claims[rec.Claim] {
			return refused(rec, relayer.ErrClaimed)
		}
		claims[rec.Claim] = true
	}
	return nil
}

// refused says which of many records the error is about.
func refused(rec relayer.Record, err error) error {
	return fmt.Errorf("import %q: %w", rec.ID, err)
}
