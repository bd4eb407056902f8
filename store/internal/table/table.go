// Package table keeps the records of a store in memory: by ID, by claim, by term and in
// creation order. It has the rules of a [relayer.Store] for both store/memory and store/bolt.
//
// A writer validates its writes in a [Batch], makes the changes durable if its store is, and then
// applies the batch as a whole. Get and List see all of it or nothing.
package table

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// Table is a set of records. After the last Load its methods are safe for concurrent use, except
// that only one goroutine at a time may call Begin or Apply, or use a [Batch].
type Table struct {
	mu       sync.RWMutex // guards the fields below; the only writer reads them without it
	byID     map[string]*Record
	byClaim  map[string]*Record
	byTerm   index
	order    list
	damaged  list
	counters Counters
	closed   error
	changes  storeutil.Feed
}

// Counters are the numbers that the next write gets.
type Counters struct {
	// NextSequence counts creates and imported records, from 1.
	NextSequence uint64

	// NextRevision grows with the writes of the whole store, from 1, so an ID that is deleted and
	// created again does not reuse a revision. It is greater than all revisions of sound records.
	NextRevision uint64
}

// New returns an empty table with room for an expected number of records.
func New(next Counters, expected int) *Table {
	return &Table{byID: make(map[string]*Record, expected), byClaim: make(map[string]*Record), byTerm: make(index), counters: next}
}

// Load adds a record that was stored before, with a sequence number that no other has. It returns
// false if the ID or the claim is taken, or the sequence number or the revision is not below the
// counters: the table is then unusable. The claim and the revision of a damaged record are not
// checked: they may differ from what was stored.
func (t *Table) Load(r *Record) bool {
	t.put(&Record{}, r)
	isNew := len(t.byID) == len(t.order) // a lookup before would cost a fifth of the load
	holder := t.byClaim[r.Claim]
	if r.Claim != "" && (holder == nil || holder.IsDamaged) {
		t.byClaim[r.Claim], holder = r, nil
	}
	return isNew && r.Sequence < t.counters.NextSequence &&
		(r.IsDamaged || holder == nil && r.Revision < t.counters.NextRevision)
}

// put adds a record without its claim, or replaces one.
func (t *Table) put(old, r *Record) {
	t.byID[r.ID] = r
	t.order.put(r)
	t.byTerm.move(old, r)
	if r.IsDamaged {
		t.damaged.put(r)
	}
}

// Snapshot returns all records at one moment, and the counters. It returns an error if the
// table is closed.
func (t *Table) Snapshot() ([]*Record, Counters, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.order), t.counters, t.closed
}

// Watch returns the changes of applied batches. It is [relayer.Store.Watch].
func (t *Table) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return t.changes.Watch(ctx, after)
}

// Close makes all later reads return an error, and ends the sequences of Watch.
func (t *Table) Close(err error) {
	t.changes.Close(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = err
}

// Get returns a record. It is [relayer.Store.Get].
func (t *Table) Get(ctx context.Context, id string) (relayer.Record, error) {
	if err := ctx.Err(); err != nil {
		return relayer.Record{}, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed != nil {
		return relayer.Record{}, t.closed
	}
	found := t.byID[id]
	if found == nil {
		return relayer.Record{}, relayer.ErrNotFound
	}
	if err := found.Err(); err != nil {
		return relayer.Record{}, err
	}
	return found.Record, nil
}

// List returns a page of a selection, with the position of the feed. It is [relayer.Store.List].
// A page of one term is found by its offset, unless a record is damaged. For several terms and
// for a search, the records are compared one by one, without the lock: writes do not wait.
func (t *Table) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	if err := ctx.Err(); err != nil {
		return relayer.Listing{}, err
	}
	found, listing, err := t.selected(ctx, query)
	if err != nil {
		return relayer.Listing{}, err
	}
	listing.Records = make([]relayer.Record, len(found))
	for i, r := range found {
		if r.IsDamaged {
			listing.Records = listing.Records[:i]
			return listing, r.Err()
		}
		listing.Records[i] = r.Record
	}
	return listing, nil
}

// selected returns the records of a page, and a listing without them.
func (t *Table) selected(ctx context.Context, query relayer.StoreQuery) (page list, found relayer.Listing, err error) {
	t.mu.RLock()
	s := t.selection(query)
	var all list
	if found.Position, err = t.changes.Position(), t.closed; s.isExact() && len(s.lists) > 0 {
		all = s.lists[0]
		page = slices.Clone(all.page(query))
	} else {
		for i := range s.lists {
			s.lists[i] = slices.Clone(s.lists[i])
		}
	}
	found.Total = len(all)
	t.mu.RUnlock()
	if err == nil && !s.isExact() {
		all, err = s.records(ctx)
		page, found.Total = all.page(query), len(all)
	}
	return page, found, err
}
