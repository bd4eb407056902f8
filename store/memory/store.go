// Package memory is a [relayer.Store] in memory, for tests and for hosts that create
// their relayers at every start. It persists nothing.
package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/recent"
	"github.com/go-relayer/relayer/store/internal/table"
	"github.com/go-relayer/relayer/store/transfer"
)

// Store is a [relayer.Store] in memory, and a [transfer.Importer] and [transfer.HistoryImporter].
// Readers do not block each other. The cost of a page by at most one term, not of a search, grows
// with its size and the logarithm of the number of records, at any offset and after any deletes.
// Watch and History have the last changes: at most 1,024, and at most 16 MiB. Revisions begin at
// 1 after each start, so an ETag of an earlier start can match other content.
//
// Create one with [New]. All methods are safe for concurrent use. A Store need not be closed.
type Store struct {
	records
	table *table.Table

	mu   sync.RWMutex // held by a write; guards past
	past recent.Changes
}

// records has the methods that need no more than a table.
type records = table.Store

var (
	_ relayer.Store            = (*Store)(nil)
	_ transfer.Importer        = (*Store)(nil)
	_ transfer.HistoryImporter = (*Store)(nil)
)

// New returns an empty Store.
func New() *Store {
	s := &Store{table: table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0)}
	s.records = table.NewStore(s.table, s.write)
	return s
}

// write validates and applies one write.
func (s *Store) write(ctx context.Context, _ int, validate table.Write) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	batch := s.table.Begin()
	if err := validate(batch); err != nil {
		return err
	}
	for _, change := range batch.History() {
		change.Time = time.Now()
		s.past.Add(change)
	}
	s.table.Apply(batch)
	return nil
}

// History returns changes of the past, newest first. Import adds none.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
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
