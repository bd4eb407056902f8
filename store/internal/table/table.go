// Package table keeps the records of a store in memory: by ID, by claim and in creation
// order. It has the rules of a [relayer.Store] for both store/memory and store/bolt.
//
// A writer validates its writes in a [Batch], makes the changes durable if its store is,
// and then applies the batch as a whole. Readers see all of it or nothing.
package table

import (
	"context"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
)

// Table is a set of records. Its methods are safe for concurrent use, except that only
// one goroutine at a time may use a [Batch] of the table or call Apply or Load.
type Table struct {
	mu       sync.RWMutex // guards the fields below; the only writer reads them without it
	byID     map[string]*Record
	byClaim  map[string]*Record
	order    List
	counters Counters
	closed   error
}

// Counters are the numbers that the next write gets.
type Counters struct {
	// NextSequence counts creates and imported records.
	NextSequence uint64

	// NextRevision counts writes of the whole store, so that an ID that is deleted and
	// created again does not reuse a revision. It is greater than all revisions.
	NextRevision uint64
}

// New returns an empty table with room for an expected number of records.
func New(next Counters, expected int) *Table {
	return &Table{byID: make(map[string]*Record, expected), byClaim: make(map[string]*Record), counters: next}
}

// Load adds a record that was stored before. It returns false if the ID or the claim is
// taken, or the sequence number or the revision is not below the counters: the table must
// then not be used. The claim and the revision of a damaged record are not checked: they
// may differ from what was stored.
func (t *Table) Load(r *Record) bool {
	t.byID[r.ID()] = r
	t.order.Insert(r)
	isNew := len(t.byID) == t.order.Len() // a lookup before would cost a fifth of the load
	if r.claimSize > 0 {
		holder := t.byClaim[r.Claim()]
		if holder == nil || holder.isDamaged {
			t.byClaim[r.Claim()] = r
		} else if !r.isDamaged {
			return false
		}
	}
	return isNew && r.sequence < t.counters.NextSequence && (r.isDamaged || r.revision < t.counters.NextRevision)
}

// hold stores the claim of a record. The empty claim is not stored, so that it has no
// holder.
func (t *Table) hold(r *Record) {
	if r.claimSize > 0 {
		t.byClaim[r.Claim()] = r
	}
}

// release removes the claim of a record, unless another record holds it.
func (t *Table) release(r *Record) {
	if t.byClaim[r.Claim()] == r {
		delete(t.byClaim, r.Claim())
	}
}

// AppendFrom appends up to limit records to dst, from a sequence number on.
func (t *Table) AppendFrom(dst []*Record, sequence uint64, limit int) []*Record {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.order.AppendFrom(dst, sequence, limit)
}

// Snapshot returns all records at one moment, and the counters. It returns an error if the
// table is closed.
func (t *Table) Snapshot() ([]*Record, Counters, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.order.AppendRange(nil, 0, t.order.Len()), t.counters, t.closed
}

// Close makes all later reads return an error.
func (t *Table) Close(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = err
}

func (t *Table) find(ctx context.Context, id string) (*Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.RLock()
	found, closed := t.byID[id], t.closed
	t.mu.RUnlock()
	if closed != nil {
		return nil, closed
	}
	if found == nil {
		return nil, relayer.ErrNotFound
	}
	return found, found.Err()
}

// page appends the records of a page to dst, and returns the number of all records.
func (t *Table) page(ctx context.Context, dst []*Record, offset, limit int) (page []*Record, total int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	t.mu.RLock()
	page, total, err = t.order.AppendRange(dst, offset, limit), t.order.Len(), t.closed
	t.mu.RUnlock()
	if err != nil {
		return nil, 0, err
	}
	for _, r := range page {
		if r.isDamaged {
			return nil, 0, r.Err()
		}
	}
	return page, total, nil
}

// Get returns a copy of a record. It is [relayer.Store.Get].
func (t *Table) Get(ctx context.Context, id string) (relayer.Record, error) {
	found, err := t.find(ctx, id)
	if err != nil {
		return relayer.Record{}, err
	}
	return found.Copy(), nil
}

// List returns copies of a page. It is [relayer.Store.List].
func (t *Table) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	page, total, err := t.page(ctx, nil, offset, limit)
	if err != nil {
		return nil, 0, err
	}
	return copyAll(page), total, nil
}

// AppendDocument is that of [relayer.DocumentStore].
func (t *Table) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	found, err := t.find(ctx, id)
	if err != nil {
		return dst, 0, err
	}
	return append(dst, found.Document()...), found.revision, nil
}

// AppendDocuments is that of [relayer.DocumentStore].
func (t *Table) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	var room [128]*Record
	page, total, err := t.page(ctx, room[:0], offset, limit)
	if err != nil {
		return dst, 0, err
	}
	size := 0
	for _, r := range page {
		size += len(r.Document()) + len(",")
	}
	dst = slices.Grow(dst, size)
	for i, r := range page {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.Document()...)
	}
	return dst, total, nil
}
