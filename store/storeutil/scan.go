package storeutil

import (
	"iter"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// Selects reports whether the query selects the record. After, Offset and Limit do not matter.
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
	hasText := func(part string) bool { return strings.Contains(rec.Text, part) }
	return len(query.Contains) == 0 || slices.ContainsFunc(query.Contains, hasText)
}

// Scan returns the page of the query and the number of selected records, as the List
// method of [relayer.Store] does. Records are all records of one snapshot in the order of
// their Sequence; the caller sets the Position of the snapshot. Their error, which is the
// last, is returned. The cost grows with the number of records.
func Scan(records iter.Seq2[relayer.Record, error], query relayer.StoreQuery) (relayer.Listing, error) {
	var found relayer.Listing
	skipped := 0
	for rec, err := range records {
		if err != nil {
			return relayer.Listing{}, err
		}
		if !Selects(query, rec) {
			continue
		}
		found.Total++
		switch {
		case rec.Sequence <= query.After:
		case skipped < query.Offset:
			skipped++
		case len(found.Records) < query.Limit:
			found.Records = append(found.Records, rec)
		}
	}
	return found, nil
}
