// Package memory is a [relayer.Store] in memory, for tests and for hosts that create
// their relayers at every start. It persists nothing.
package memory

import (
	"context"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/feed"
)

// Store is a [relayer.Store] in memory. Readers do not block each other, with one exception:
// the first AppendDocuments after a write blocks other calls while it joins the documents of
// its page. The cost of a page grows with its size and the logarithm of the number of
// records, at any offset and after any pattern of deletes.
//
// Create one with [New]. All methods are safe for concurrent use. A Store need not be
// closed.
type Store struct {
	changes *feed.Feed[relayer.RecordChange]

	mu       sync.RWMutex
	byID     map[string]*entry
	claims   map[string]*entry
	order    order
	revision uint64
}

var _ relayer.Store = (*Store)(nil)

// New returns an empty Store.
func New() *Store {
	return &Store{
		changes: feed.New(relayer.ErrGap, delivered),
		byID:    make(map[string]*entry),
		claims:  make(map[string]*entry),
	}
}

// Create adds a record. It returns [relayer.ErrExists] if the ID is taken, and
// [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := checkLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	own := separateCopyOf(rec)

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
	return copyOf(rec), nil
}

// List returns up to limit records from offset on, oldest first, and the number of
// all records.
func (s *Store) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	recs, total := s.page(offset, limit)
	copyAll(recs)
	return recs, total, nil
}

// page returns records that share their bytes with the store. Stored bytes never
// change, so that they can be copied after the lock is released.
func (s *Store) page(offset, limit int) ([]relayer.Record, int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	total := len(s.byID)
	limit = onPage(total, offset, limit)
	recs := make([]relayer.Record, 0, limit)
	s.order.spans(offset, limit, func(found span) bool {
		for slot, e := range s.order.inPiece(found.piece) {
			if found.slots.Has(slot) {
				recs = append(recs, e.rec)
			}
		}
		return true
	})
	return recs, total
}

// Update replaces the record whose current revision is rec.Revision. It returns
// [relayer.ErrNotFound], [relayer.ErrConflict] if the current revision is another,
// and [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := checkLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	own := separateCopyOf(rec)

	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.current(ctx, rec.ID, rec.Revision)
	if err != nil {
		return relayer.Record{}, err
	}
	if holder := s.claims[rec.Claim]; holder != nil && holder != found {
		return relayer.Record{}, relayer.ErrClaimed
	}
	own.Revision = s.nextRevision()
	delete(s.claims, found.rec.Claim)
	found.rec = own
	s.order.invalidate(found)
	s.hold(found)
	s.publish(relayer.Updated, own)
	rec.Revision = own.Revision
	return rec, nil
}

// Delete removes the record whose current revision is revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.current(ctx, id, revision)
	if err != nil {
		return err
	}
	delete(s.byID, id)
	delete(s.claims, found.rec.Claim)
	s.order.remove(found)
	// A copy, because the document shares its memory with those of other records.
	s.publish(relayer.Deleted, copyOf(found.rec))
	return nil
}

// current returns the entry that a write is based on.
func (s *Store) current(ctx context.Context, id string, revision uint64) (*entry, error) {
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

// add appends a record whose ID and claim are free.
func (s *Store) add(added *entry) {
	s.byID[added.rec.ID] = added
	s.hold(added)
	s.order.add(added)
	s.publish(relayer.Created, added.rec)
}

// hold stores the claim of an entry. The empty claim is not stored, so that it has no
// holder.
func (s *Store) hold(holder *entry) {
	if holder.rec.Claim != "" {
		s.claims[holder.rec.Claim] = holder
	}
}

// nextRevision counts for the whole store, so that an ID that is deleted and created
// again does not reuse a revision.
func (s *Store) nextRevision() uint64 {
	s.revision++
	return s.revision
}
