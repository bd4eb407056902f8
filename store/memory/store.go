// Package memory is a [relayer.Store] in memory, for tests and for hosts that create
// their relayers at every start. It persists nothing.
package memory

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/recent"
	"github.com/go-relayer/relayer/store/internal/table"
	"github.com/go-relayer/relayer/store/storeutil"
	"github.com/go-relayer/relayer/store/transfer"
)

// Store is a [relayer.Store] in memory. Readers do not block each other. The cost of a
// page grows with its size and the logarithm of the number of records, at any offset and
// after any pattern of deletes.
//
// Create one with [New]. All methods are safe for concurrent use. A Store need not be
// closed.
type Store struct {
	table   *table.Table
	writing sync.Mutex

	past    recent.Changes
	reading sync.RWMutex // guards past
}

var (
	_ relayer.Store            = (*Store)(nil)
	_ transfer.Importer        = (*Store)(nil)
	_ transfer.HistoryImporter = (*Store)(nil)
)

// New returns an empty Store.
func New() *Store {
	return &Store{table: table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0)}
}

// write validates and applies one write.
func (s *Store) write(ctx context.Context, validate func(*table.Batch) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	batch := s.table.Begin()
	if err := validate(batch); err != nil {
		return err
	}
	s.remember(batch)
	s.table.Apply(batch)
	return nil
}

// remember adds the changes of a batch to the history.
func (s *Store) remember(b *table.Batch) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for _, change := range b.History() {
		s.past.Add(change)
	}
}

// Create adds a record. It returns [relayer.ErrExists] if the ID is taken, and
// [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.put(ctx, rec, (*table.Batch).Create)
}

// Update replaces the record whose current revision is rec.Revision. It returns
// [relayer.ErrNotFound], [relayer.ErrConflict] if the current revision is another,
// and [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.put(ctx, rec, (*table.Batch).Update)
}

// put creates or updates a record and returns it with its revision.
func (s *Store) put(ctx context.Context, rec relayer.Record, validate func(*table.Batch, *table.Record) error) (relayer.Record, error) {
	if err := storeutil.Check(rec, table.MaxSize); err != nil {
		return relayer.Record{}, err
	}
	r := table.NewRecord(rec)
	if err := s.write(ctx, func(b *table.Batch) error { return validate(b, r) }); err != nil {
		return relayer.Record{}, err
	}
	rec.Revision, rec.Sequence = r.Revision, r.Sequence
	return rec, nil
}

// Delete removes the record whose current revision is revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.write(ctx, func(b *table.Batch) error { return b.Delete(id, revision, note) })
}

// Import adds the records after all others, with the revisions given: all of them or
// none. It returns [relayer.ErrExists] if an ID is taken or occurs twice, and
// [relayer.ErrClaimed] if a claim is held or occurs twice.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	added := make([]*table.Record, len(records))
	for i, rec := range records {
		if err := table.CheckImport(rec); err != nil {
			return err
		}
		added[i] = table.NewRecord(rec)
	}
	return s.write(ctx, func(b *table.Batch) error { return b.Import(added) })
}

// ImportHistory adds changes of another store to the history, in ascending order of their
// revisions: all of them or none. It returns [relayer.ErrConflict] if a revision is not
// greater than all before.
func (s *Store) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	return s.write(ctx, func(b *table.Batch) error { return b.ImportHistory(changes) })
}

// Get returns the record, or [relayer.ErrNotFound].
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	return s.table.Get(ctx, id)
}

// List returns the selected records of the page, oldest first, the number of all selected
// records, and the position of the feed, in one snapshot.
func (s *Store) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return s.table.List(ctx, query)
}

// Watch returns the changes in the order in which they were made, until ctx is done:
// from the call on, or after a position. The store retains the last 1,024 changes or
// 16 MiB. It ends with [relayer.ErrGap] for a consumer that is further behind, or resumes
// at an earlier position or one of another store. The sequence can be ranged over once.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return s.table.Watch(ctx, after)
}

// History returns changes of the past, newest first. The store retains the last 1,024
// or 16 MiB. Imports are not in it.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.reading.RLock()
	defer s.reading.RUnlock()
	var found []relayer.RecordChange
	for _, change := range slices.Backward(s.past.All) {
		isSelected := (query.ID == "" || change.Record.ID == query.ID) && (query.Before == 0 || change.Record.Revision < query.Before)
		if isSelected && len(found) < query.Limit {
			change.Record.Private = nil
			found = append(found, change)
		}
	}
	return found, nil
}
