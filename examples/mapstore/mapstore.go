// Package mapstore is a complete [relayer.Store] over a map, as a template for a store of
// your own. Package storeutil provides the change feed and the selection of records.
package mapstore

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// Store is a [relayer.Store] over a map. The cost of a list grows with the number of
// records. The zero value is empty and ready to use.
type Store struct {
	mu      sync.RWMutex
	records map[string]relayer.Record
	order   []string          // IDs in creation order
	claims  map[string]string // ID by claim
	last    uint64            // revision of the last write
	changes storeutil.Feed
}

// Create adds a record. It returns [relayer.ErrExists] or [relayer.ErrClaimed].
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(ctx, rec.ID); !errors.Is(err, relayer.ErrNotFound) {
		return relayer.Record{}, cmp.Or(err, relayer.ErrExists)
	}
	rec.Sequence = s.last + 1
	return s.put(rec, relayer.RecordChange{Kind: relayer.ChangeCreated})
}

// Update replaces the record. It returns [relayer.ErrNotFound], [relayer.ErrConflict] or
// [relayer.ErrClaimed].
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.current(ctx, rec.ID, rec.Revision)
	if err != nil {
		return relayer.Record{}, err
	}
	rec.Sequence = old.Sequence
	return s.put(rec, relayer.RecordChange{Kind: relayer.ChangeUpdated, OldTerms: old.Terms, OldText: old.Text})
}

// Delete removes the record. It returns [relayer.ErrNotFound] or [relayer.ErrConflict].
func (s *Store) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.current(ctx, id, revision)
	if err != nil {
		return err
	}
	delete(s.records, id)
	delete(s.claims, old.Claim)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == id })
	s.last++
	old.Revision, old.Note = s.last, note
	s.changes.Publish(relayer.RecordChange{Kind: relayer.ChangeDeleted, Record: old, OldTerms: old.Terms, OldText: old.Text})
	return nil
}

// current returns the record to change if its revision is the given one.
func (s *Store) current(ctx context.Context, id string, revision uint64) (relayer.Record, error) {
	rec, err := s.find(ctx, id)
	if err == nil && rec.Revision != revision {
		err = relayer.ErrConflict
	}
	return rec, err
}

// put stores the record with the next revision, and publishes the change.
func (s *Store) put(rec relayer.Record, change relayer.RecordChange) (relayer.Record, error) {
	if holder, isHeld := s.claims[rec.Claim]; isHeld && holder != rec.ID {
		return relayer.Record{}, relayer.ErrClaimed
	}
	if s.records == nil {
		s.records, s.claims = make(map[string]relayer.Record), make(map[string]string)
	}
	delete(s.claims, s.records[rec.ID].Claim)
	if rec.Claim != "" {
		s.claims[rec.Claim] = rec.ID
	}
	if change.Kind == relayer.ChangeCreated {
		s.order = append(s.order, rec.ID)
	}
	s.last++
	rec.Revision = s.last
	s.records[rec.ID] = rec
	change.Record = rec
	s.changes.Publish(change)
	return rec, nil
}

// Get returns the record, or [relayer.ErrNotFound].
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(ctx, id)
}

func (s *Store) find(ctx context.Context, id string) (relayer.Record, error) {
	if err := ctx.Err(); err != nil {
		return relayer.Record{}, err
	}
	rec, ok := s.records[id]
	if !ok {
		return rec, relayer.ErrNotFound
	}
	return rec, nil
}

// List returns the selected records of the page, the number of all selected records, and the
// position of the feed.
func (s *Store) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := ctx.Err(); err != nil {
		return relayer.Listing{}, err
	}
	listing, err := storeutil.Scan(s.all, query)
	listing.Position = s.changes.Position()
	return listing, err
}

// all yields the records in creation order.
func (s *Store) all(yield func(relayer.Record, error) bool) {
	for _, id := range s.order {
		if !yield(s.records[id], nil) {
			return
		}
	}
}

// Watch returns the changes from the call on, or after a position.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return s.changes.Watch(ctx, after)
}

// History returns [errors.ErrUnsupported]: this store retains none.
func (s *Store) History(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return nil, errors.ErrUnsupported
}
