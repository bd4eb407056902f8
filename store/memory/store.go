// Package memory keeps relayers in memory: for tests, and for hosts that make
// their relayers anew at every start. Nothing outlives the [Store].
package memory

import (
	"context"
	"sync"

	"github.com/go-relayer/relayer"
)

// Store is a [relayer.Store] in memory. Readers run side by side, and a page
// costs the same at any offset, after any pattern of deletes: the logarithm of
// the number of records, and the records of the page.
//
// Make one with [New]. All methods are safe for concurrent use. It has nothing
// to close.
type Store struct {
	mu       sync.RWMutex
	byID     map[string]*entry
	claims   map[string]*entry
	order    order
	revision uint64
}

var _ relayer.Store = (*Store)(nil)

// New returns a store that holds nothing.
func New() *Store {
	return &Store{
		byID:   make(map[string]*entry),
		claims: make(map[string]*entry),
	}
}

// Create adds a record. It returns [relayer.ErrExists] where the id is taken
// and [relayer.ErrClaimed] where another record holds the claim.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := keepsLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	own := detached(rec)

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return relayer.Record{}, err
	}
	if s.byID[rec.ID] != nil {
		return relayer.Record{}, relayer.ErrExists
	}
	if s.claims[rec.Claim] != nil {
		return relayer.Record{}, relayer.ErrClaimed
	}
	own.Revision = s.nextRevision()
	s.add(&entry{rec: own})
	rec.Revision = own.Revision
	return rec, nil
}

// Get returns the record, or [relayer.ErrNotFound].
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	if err := ctx.Err(); err != nil {
		return relayer.Record{}, err
	}
	s.mu.RLock()
	found := s.byID[id]
	if found == nil {
		s.mu.RUnlock()
		return relayer.Record{}, relayer.ErrNotFound
	}
	rec := found.rec
	s.mu.RUnlock()
	return detached(rec), nil
}

// List returns up to limit records from offset on, oldest first, and the number
// of all.
func (s *Store) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	recs, total := s.page(offset, limit)
	detachAll(recs)
	return recs, total, nil
}

// page collects the records without copying their bytes: a stored byte never
// changes, so that copying can wait until the lock is free again.
func (s *Store) page(offset, limit int) ([]relayer.Record, int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	total := len(s.byID)
	if offset < 0 || offset >= total || limit <= 0 {
		return nil, total
	}
	recs := make([]relayer.Record, min(limit, total-offset))
	next := s.order.at(offset)
	for i := range recs {
		recs[i] = next.rec
		next = next.next
	}
	return recs, total
}

// Update replaces the record that stands at rec.Revision. It returns
// [relayer.ErrNotFound], [relayer.ErrConflict] where it stands at another
// revision, and [relayer.ErrClaimed] where another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := keepsLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	own := detached(rec)

	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.standing(ctx, rec.ID, rec.Revision)
	if err != nil {
		return relayer.Record{}, err
	}
	if holder := s.claims[rec.Claim]; holder != nil && holder != found {
		return relayer.Record{}, relayer.ErrClaimed
	}
	own.Revision = s.nextRevision()
	delete(s.claims, found.rec.Claim)
	found.rec = own
	s.hold(found)
	rec.Revision = own.Revision
	return rec, nil
}

// Delete removes the record that stands at the revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] where it stands at another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.standing(ctx, id, revision)
	if err != nil {
		return err
	}
	delete(s.byID, id)
	delete(s.claims, found.rec.Claim)
	s.order.remove(found)
	return nil
}

// standing finds the entry that a write is based on.
func (s *Store) standing(ctx context.Context, id string, revision uint64) (*entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found := s.byID[id]
	if found == nil {
		return nil, relayer.ErrNotFound
	}
	if found.rec.Revision != revision {
		return nil, relayer.ErrConflict
	}
	return found, nil
}

// add enters a record whose id and claim are free, after all others.
func (s *Store) add(made *entry) {
	s.byID[made.rec.ID] = made
	s.hold(made)
	s.order.add(made)
}

// hold never enters the empty claim, so that looking it up finds no holder.
func (s *Store) hold(holder *entry) {
	if holder.rec.Claim != "" {
		s.claims[holder.rec.Claim] = holder
	}
}

// nextRevision counts for the whole store, so that an id that is deleted and
// created again goes on where it was.
func (s *Store) nextRevision() uint64 {
	s.revision++
	return s.revision
}
