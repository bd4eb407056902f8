// Package model runs random calls on the stores and on a model that is simple
// enough to be obviously correct, and compares the results.
package model

import (
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// naive is the model of a store: a slice of records in creation order.
type naive struct {
	recs []relayer.Record
}

func (n *naive) index(id string) int {
	return slices.IndexFunc(n.recs, func(rec relayer.Record) bool { return rec.ID == id })
}

func (n *naive) isClaimed(claim, except string) bool {
	return claim != "" && slices.ContainsFunc(n.recs, func(rec relayer.Record) bool {
		return rec.Claim == claim && rec.ID != except
	})
}

func (n *naive) create(rec relayer.Record) error {
	switch {
	case n.index(rec.ID) >= 0:
		return relayer.ErrExists
	case n.isClaimed(rec.Claim, ""):
		return relayer.ErrClaimed
	}
	n.recs = append(n.recs, rec)
	return nil
}

// importAll adds all records, or none if one is refused.
func (n *naive) importAll(recs []relayer.Record) error {
	after := naive{slices.Clone(n.recs)}
	for _, rec := range recs {
		if err := after.create(rec); err != nil {
			return err
		}
	}
	*n = after
	return nil
}

func (n *naive) get(id string) (relayer.Record, error) {
	at := n.index(id)
	if at < 0 {
		return relayer.Record{}, relayer.ErrNotFound
	}
	return n.recs[at], nil
}

func (n *naive) update(rec relayer.Record, revision uint64) error {
	at := n.index(rec.ID)
	switch {
	case at < 0:
		return relayer.ErrNotFound
	case n.recs[at].Revision != revision:
		return relayer.ErrConflict
	case n.isClaimed(rec.Claim, rec.ID):
		return relayer.ErrClaimed
	}
	rec.Sequence = n.recs[at].Sequence
	n.recs[at] = rec
	return nil
}

func (n *naive) delete(id string, revision uint64) error {
	at := n.index(id)
	switch {
	case at < 0:
		return relayer.ErrNotFound
	case n.recs[at].Revision != revision:
		return relayer.ErrConflict
	}
	n.recs = slices.Delete(n.recs, at, at+1)
	return nil
}

// list returns the page of a query and the number of selected records.
func (n *naive) list(query relayer.StoreQuery) (page []relayer.Record, total int) {
	var selected []relayer.Record
	for _, rec := range n.recs {
		if storeutil.Selects(query, rec) {
			selected = append(selected, rec)
		}
	}
	page = slices.DeleteFunc(slices.Clone(selected), func(rec relayer.Record) bool { return rec.Sequence <= query.After })
	page = page[min(query.Offset, len(page)):]
	return page[:min(query.Limit, len(page))], len(selected)
}

// set sets the numbers that the store under test has chosen.
func (n *naive) set(id string, revision, sequence uint64) {
	rec := &n.recs[n.index(id)]
	rec.Revision, rec.Sequence = revision, sequence
}
