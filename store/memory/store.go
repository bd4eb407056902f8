// Package memory is a [relayer.Store] in memory, for tests and for hosts that create
// their relayers at every start. It persists nothing.
package memory

import (
	"context"
	"iter"
	"sync"

	"github.com/go-relayer/relayer"
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
	changes storeutil.Feed
	writing sync.Mutex
}

var (
	_ relayer.Store     = (*Store)(nil)
	_ transfer.Importer = (*Store)(nil)
)

// New returns an empty Store.
func New() *Store {
	return &Store{table: table.New(table.Counters{NextRevision: 1}, 0)}
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
	s.table.Apply(batch)
	batch.Publish(&s.changes)
	return nil
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
	rec.Revision = r.Revision()
	return rec, nil
}

// Delete removes the record whose current revision is revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	return s.write(ctx, func(b *table.Batch) error { return b.Delete(id, revision) })
}

// Import adds the records after all others, with the revisions given: all of them or
// none. It returns [relayer.ErrExists] if an ID is taken or occurs twice, and
// [relayer.ErrClaimed] if a claim is held or occurs twice.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	added := make([]*table.Record, len(records))
	for i, rec := range records {
		if err := storeutil.CheckImport(rec, table.MaxSize); err != nil {
			return table.ImportError(rec.ID, err)
		}
		added[i] = table.NewRecord(rec)
	}
	return s.write(ctx, func(b *table.Batch) error { return b.Import(added) })
}

// Get returns the record, or [relayer.ErrNotFound].
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	return s.table.Get(ctx, id)
}

// List returns the selected records of the page, oldest first, and the number of all
// selected records.
func (s *Store) List(ctx context.Context, query relayer.StoreQuery) ([]relayer.Record, int, error) {
	return s.table.List(ctx, query)
}

// AppendDocuments appends the documents of a page of all relayers to dst, and returns the
// number of all relayers. See [relayer.Manager.AppendDocuments].
func (s *Store) AppendDocuments(ctx context.Context, dst []relayer.Document, offset, limit int) ([]relayer.Document, int, error) {
	return s.table.AppendDocuments(ctx, dst, offset, limit)
}

// Watch returns the changes in the order in which they were made, until ctx is done:
// from the call on, or after a position. The store retains the last 1,024 changes or
// 16 MiB. It ends with [relayer.ErrGap] for a consumer that is further behind, or resumes
// at an earlier position or one of another store. The sequence can be ranged over once.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return s.changes.Watch(ctx, after)
}
