package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// ListQuery is a page of a selection of relayers. The zero value is the first page of
// [DefaultPerPage] relayers of all.
type ListQuery struct {
	// Selector selects the relayers.
	Selector Selector

	// Page is the number of the page, from 1. Page 0 is the first page too.
	Page int

	// PerPage is the number of relayers of a page. 0 is [DefaultPerPage]. A number above
	// the maximum (see [WithMaxPerPage]) is lowered to it; [Pagination.PerPage] is the
	// number used.
	PerPage int
}

// Page is one page of a selection of relayers.
type Page struct {
	Relayers   []*Relayer
	Pagination Pagination
}

// List returns one page of the relayers that the query selects, in creation order, oldest
// first, and their total in the same snapshot. A page past the end is empty and has the
// correct total. It returns a [*ValidationError] if the query is invalid.
//
// Every page is a separate snapshot. If a relayer of an earlier page is deleted, or changed
// so that the query does not select it, the later pages shift, and the next page lacks a
// relayer. [Manager.All] lacks none.
//
// The cost of a page does not depend on its number or on the number of relayers. A query
// with a search reads all relayers that its other terms select, and not in one snapshot.
func (m *Manager) List(ctx context.Context, query ListQuery) (*Page, error) {
	return observe(ctx, m, ActionList, "", func(ctx context.Context) (*Page, error) {
		records, pagination, err := m.listRecords(ctx, query)
		if err != nil {
			return nil, err
		}
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

func (m *Manager) listRecords(ctx context.Context, query ListQuery) ([]Record, Pagination, error) {
	pagination, offset, err := m.paginate(query)
	if err != nil {
		return nil, Pagination{}, err
	}
	selector, err := m.selection(query.Selector)
	if err != nil {
		return nil, Pagination{}, err
	}
	read := m.selectRecords
	if selector.hasSearch() {
		read = m.search
	}
	records, total, err := read(ctx, selector, offset, pagination.PerPage)
	if err != nil {
		return nil, Pagination{}, err
	}
	pagination.TotalItems = total
	return records, pagination, nil
}

// selection returns the selector within that of the Manager.
func (m *Manager) selection(selector Selector) (Selector, error) {
	selector = m.scope.And(selector)
	return selector, selector.Err()
}

// paginate returns the page to read, without its total, and the number of
// relayers before it.
func (s *settings) paginate(query ListQuery) (Pagination, int, error) {
	found := new(problems)
	if query.Page < 0 {
		found.Add("page", "must be 0 or more")
	}
	if query.PerPage < 0 {
		found.Add("per_page", "must be 0 or more")
	}
	if err := found.err(); err != nil {
		return Pagination{}, 0, err
	}
	p := Pagination{CurrentPage: max(query.Page, 1), PerPage: min(cmp.Or(query.PerPage, DefaultPerPage), s.maxPerPage)}
	offset := math.MaxInt
	if p.CurrentPage-1 <= math.MaxInt/p.PerPage {
		offset = (p.CurrentPage - 1) * p.PerPage
	}
	return p, offset, nil
}

// selectRecords returns records that the selector, without its searches, selects, and their
// total.
func (m *Manager) selectRecords(ctx context.Context, selector Selector, offset, limit int) ([]Record, int, error) {
	if selector.IsZero() {
		return m.store.List(ctx, StoreQuery{Offset: offset, Limit: limit})
	}
	if selector.selectsNothing() {
		return nil, 0, ctx.Err()
	}
	query := selector.query()
	query.Offset, query.Limit = offset, limit
	records, total, err := m.store.List(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	for _, rec := range records {
		// The selector may be a scope: a defect of a store must not reveal other relayers.
		if !selector.matchesTerms(rec.ID, rec.Terms) {
			return nil, 0, fmt.Errorf("relayer: the store returned a relayer that is not selected by %s", selector)
		}
	}
	return records, total, nil
}

func (m *Manager) search(ctx context.Context, selector Selector, offset, limit int) (page []Record, total int, err error) {
	for rec, err := range walk(selector, func(offset int) ([]recordRead, error) { return m.readBatch(ctx, selector, offset) }) {
		if err != nil {
			return nil, 0, err
		}
		if total++; total > offset && len(page) < limit {
			page = append(page, rec)
		}
	}
	return page, total, nil
}

// All returns every relayer that the selector selects, in creation order, oldest first. It
// reads in pages and blocks no writer: the loop body may change and delete relayers, even so
// that the selector no longer selects them. A relayer that exists and is selected during the
// whole iteration is returned exactly once, despite concurrent writes, and no ID is returned
// twice; All keeps the IDs that it has returned in memory. The iteration ends after the
// first error. If ctx is done, it ends with the error of ctx, at the next page at the
// latest.
func (m *Manager) All(ctx context.Context, selector Selector) iter.Seq2[*Relayer, error] {
	return func(yield func(*Relayer, error) bool) {
		for rec, err := range m.allRecords(ctx, selector) {
			var r *Relayer
			if err == nil {
				r, err = m.relayerOf(rec)
				err = operationError(ActionList, "", err)
			}
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

// allRecords yields the selected records of the view. It is observed as the lists that it
// reads.
func (m *Manager) allRecords(ctx context.Context, selector Selector) iter.Seq2[Record, error] {
	selector, err := m.selection(selector)
	return walk(selector, func(offset int) ([]recordRead, error) {
		return observe(ctx, m, ActionList, "", func(ctx context.Context) ([]recordRead, error) {
			if err != nil {
				return nil, err
			}
			return m.readBatch(ctx, selector, offset)
		})
	})
}

// walk reads the list by offset. Deletes move later records forward, so that
// an offset counted by the records read so far may be too large. If a record still
// has the revision at which it was read, it was not deleted and created since, and
// all records before it have been read too. If a batch contains such a record, no
// record was skipped; otherwise the walk steps back. The overlap has
// several records, so that one that changes constantly does not stall the walk.
//
// It yields an error that matches [ErrCorrupt] for each damaged record, and continues. A
// record in the overlap is then yielded twice. After any other error it ends.
func walk(selector Selector, readBatch func(offset int) ([]recordRead, error)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		read := make(map[string]uint64) // revisions by ID
		offset := 0
		for {
			batch, err := readBatch(offset)
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
				if !known && (r.err != nil || selector.findsRecord(r.Record)) && !yield(r.Record, r.err) {
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

type recordRead struct {
	Record
	err error
}

func (m *Manager) readBatch(ctx context.Context, selector Selector, offset int) ([]recordRead, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, _, err := m.selectRecords(ctx, selector, offset, allBatch)
	if errors.Is(err, ErrCorrupt) {
		return m.readSingly(ctx, selector, offset)
	}
	return appendRead(nil, records), err
}

func appendRead(batch []recordRead, records []Record) []recordRead {
	for _, rec := range records {
		batch = append(batch, recordRead{Record: rec})
	}
	return batch
}

// readSingly reads a batch that has a damaged record.
func (m *Manager) readSingly(ctx context.Context, selector Selector, offset int) (batch []recordRead, err error) {
	_, total, err := m.selectRecords(ctx, selector, 0, 0)
	for end := min(total, offset+allBatch); offset < end && err == nil; offset++ {
		var records []Record
		records, _, err = m.selectRecords(ctx, selector, offset, 1)
		if errors.Is(err, ErrCorrupt) {
			batch, err = append(batch, recordRead{err: err}), nil
			continue
		}
		batch = appendRead(batch, records)
	}
	return batch, err
}
