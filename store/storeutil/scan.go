package storeutil

import (
	"iter"
	"slices"

	"github.com/go-relayer/relayer"
)

// Selects reports whether the query selects the record. Offset and Limit do not matter.
func Selects(query relayer.StoreQuery, rec relayer.Record) bool {
	if len(query.IDs) > 0 && !slices.Contains(query.IDs, rec.ID) {
		return false
	}
	hasTerm := func(term string) bool {
		_, found := slices.BinarySearch(rec.Terms, term)
		return found
	}
	for _, terms := range query.Terms {
		if !slices.ContainsFunc(terms, hasTerm) {
			return false
		}
	}
	return true
}

// Scan returns the page of the query and the number of selected records, as the List
// method of [relayer.Store] does. Records are all records of one snapshot in creation
// order. Their error, which is the last, is returned. The cost grows with the number of
// records.
func Scan(records iter.Seq2[relayer.Record, error], query relayer.StoreQuery) (page []relayer.Record, total int, err error) {
	for rec, err := range records {
		if err != nil {
			return nil, 0, err
		}
		if !Selects(query, rec) {
			continue
		}
		if total >= query.Offset && len(page) < query.Limit {
			page = append(page, rec)
		}
		total++
	}
	return page, total, nil
}
