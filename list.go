package relayer

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
)

// Page is one page of the list of all relayers.
type Page struct {
	Relayers   []*Relayer
	Pagination Pagination
}

// List returns one page of all relayers in creation order, oldest first. Pages
// start at 1; page 0 is the first page too. A perPage above the maximum (see
// [WithMaxPerPage]) is lowered to it; Pagination.PerPage is the value used. A page
// past the end is empty and has the correct total, as has one with a perPage of 0.
func (m *Manager) List(ctx context.Context, page, perPage uint32) (*Page, error) {
	return observe(ctx, m, OperationList, new(string), func() (*Page, error) {
		pagination, offset := m.paginate(page, perPage)
		records, total, err := m.store.List(ctx, offset, int(pagination.PerPage))
		if err != nil {
			return nil, err
		}
		pagination.TotalItems = total
		listed := &Page{Relayers: make([]*Relayer, 0, len(records)), Pagination: pagination}
		for _, rec := range records {
			r, err := m.relayerOf(rec)
			if err != nil {
				return nil, err
			}
			listed.Relayers = append(listed.Relayers, r)
		}
		return listed, nil
	})
}

// paginate returns the page to read, without its total, and the number of
// relayers before it.
func (m *Manager) paginate(page, perPage uint32) (Pagination, int) {
	page = max(page, 1)
	perPage = min(perPage, m.maxPerPage)
	// Both factors are below 2^32, so that the product fits.
	offset := min(uint64(page-1)*uint64(perPage), math.MaxInt)
	return Pagination{CurrentPage: page, PerPage: perPage}, int(offset)
}

// All returns every relayer in creation order, oldest first. It reads in pages
// and blocks no writer. A relayer that exists during the whole iteration is
// returned exactly once, despite concurrent writes, and no ID is returned twice;
// All keeps the IDs that it has returned in memory. The iteration ends after the
// first error. If ctx is done, it ends with the error of ctx, at the next page at the
// latest.
func (m *Manager) All(ctx context.Context) iter.Seq2[*Relayer, error] {
	return func(yield func(*Relayer, error) bool) {
		for rec, err := range m.allRecords(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			r, err := m.relayerOf(rec)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// allBatch is the number of records that allRecords reads at a time, and
// allOverlap the number of them that it has read before.
const (
	allBatch   = 100
	allOverlap = 10
)

// allRecords reads the list by offset. Deletes move later records forward, so that
// an offset counted by the records read so far may be too large. If a record still
// has the revision at which it was read, it was not deleted and created since, and
// all records before it have been read too. If a batch contains such a record, no
// record was skipped; otherwise the walk steps back. The overlap has
// several records, so that one that changes constantly does not stall the walk.
//
// It yields an error that matches [ErrCorrupt] for each damaged record, and continues. A
// record in the overlap is then yielded twice. After any other error it ends.
func (m *Manager) allRecords(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		read := make(map[string]uint64) // revisions by ID
		offset := 0
		for {
			batch, err := m.readBatch(ctx, offset)
			if err != nil {
				yield(Record{}, err)
				return
			}
			wasRead := func(r recordRead) bool { return r.err != nil || read[r.ID] == r.Revision }
			if offset > 0 && !slices.ContainsFunc(batch, wasRead) {
				offset = max(0, offset-allBatch)
				continue
			}
			for _, r := range batch {
				_, known := read[r.ID]
				if r.err == nil {
					read[r.ID] = r.Revision
				}
				if !known && !yield(r.Record, r.err) {
					return
				}
			}
			if len(batch) < allBatch {
				return
			}
			offset += allBatch - allOverlap
		}
	}
}

// recordRead is a record, or the error of a damaged one.
type recordRead struct {
	Record
	err error
}

func (m *Manager) readBatch(ctx context.Context, offset int) ([]recordRead, error) {
	return observe(ctx, m, OperationList, new(string), func() ([]recordRead, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		records, _, err := m.store.List(ctx, offset, allBatch)
		if errors.Is(err, ErrCorrupt) {
			return m.readSingly(ctx, offset)
		}
		return appendRead(nil, records), err
	})
}

func appendRead(batch []recordRead, records []Record) []recordRead {
	for _, rec := range records {
		batch = append(batch, recordRead{Record: rec})
	}
	return batch
}

// readSingly reads a batch that has a damaged record.
func (m *Manager) readSingly(ctx context.Context, offset int) (batch []recordRead, err error) {
	_, total, err := m.store.List(ctx, 0, 0)
	for end := min(total, offset+allBatch); offset < end && err == nil; offset++ {
		var records []Record
		records, _, err = m.store.List(ctx, offset, 1)
		if errors.Is(err, ErrCorrupt) {
			batch, err = append(batch, recordRead{err: err}), nil
			continue
		}
		batch = appendRead(batch, records)
	}
	return batch, err
}
