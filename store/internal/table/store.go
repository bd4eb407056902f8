package table

import (
	"context"
	"iter"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// Store implements the methods of a [relayer.Store], except History, and the imports of store/transfer.
// A store embeds it under an unexported name.
type Store struct {
	reader // the table
	write  func(ctx context.Context, size int, w Write) error
}

// reader has the methods that a Store takes from a [Table].
type reader interface {
	Get(ctx context.Context, id string) (relayer.Record, error)
	List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error)
	Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error]
}

// Write validates a write in a batch.
type Write func(*Batch) error

// NewStore returns the methods of a store on a table. The function write commits a write of size
// bytes and applies it to the table.
func NewStore(t *Table, write func(ctx context.Context, size int, w Write) error) Store {
	return Store{reader: t, write: write}
}

// Create implements [relayer.Store].
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.put(ctx, rec, (*Batch).Create)
}

// Update implements [relayer.Store].
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.put(ctx, rec, (*Batch).Update)
}

// put creates or updates a record and returns it with its revision and sequence.
func (s *Store) put(ctx context.Context, rec relayer.Record, validate func(*Batch, *Record) error) (relayer.Record, error) {
	if err := storeutil.Check(rec, MaxSize); err != nil {
		return relayer.Record{}, err
	}
	r := NewRecord(rec)
	if err := s.write(ctx, r.Size(), func(b *Batch) error { return validate(b, r) }); err != nil {
		return relayer.Record{}, err
	}
	rec.Revision, rec.Sequence = r.Revision, r.Sequence
	return rec, nil
}

// Delete implements [relayer.Store]. It removes a damaged record under any revision.
func (s *Store) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.write(ctx, len(note), func(b *Batch) error { return b.Delete(id, revision, note) })
}

// Import implements transfer.Importer.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	added := make([]*Record, len(records))
	size := 0
	for i, rec := range records {
		if err := CheckImport(rec); err != nil {
			return err
		}
		added[i] = NewRecord(rec)
		size += added[i].Size()
	}
	return s.write(ctx, size, func(b *Batch) error { return b.Import(added) })
}

// ImportHistory implements transfer.HistoryImporter.
func (s *Store) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	size := 0
	for _, c := range changes {
		size += len(c.Record.Document) + len(c.Record.Note)
	}
	return s.write(ctx, size, func(b *Batch) error { return b.ImportHistory(changes) })
}
