package storeutil

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
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

// Scan returns the page of the query and the number of selected records, as the List method of
// [relayer.Store] does without damage. Records are all records of one snapshot in the order of
// their Sequence; the caller sets the Position of the snapshot. Scan returns their first error.
// The cost grows with the number of records.
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

// Check returns a [*relayer.ValidationError] if the ID, the claim, the terms, the text or the
// note of a record violate the limits of package relayer, or Document and Private together exceed
// maxBytes. The check is optional: the Manager writes no such record. Other callers can. MaxBytes
// must be far above [relayer.WithMaxRelayerSize], because a seal and a disable add to it, and at
// least 2 MiB for storetest. A store without a limit passes [math.MaxInt].
func Check(rec relayer.Record, maxBytes int) error {
	switch {
	case len(rec.ID) == 0 || len(rec.ID) > limits.ID || !isText(rec.ID):
		return invalid("id", fmt.Sprintf("must be 1 to %d bytes of UTF-8 without NUL", limits.ID))
	case len(rec.Claim) > limits.Claim:
		return invalid("claim", fmt.Sprintf("must be at most %d bytes long", limits.Claim))
	case !areTerms(rec.Terms):
		return invalid("terms", fmt.Sprintf("must be at most %d distinct texts in ascending order, each 1 to %d bytes long",
			limits.Terms, limits.Term))
	case len(rec.Text) > limits.Text || !isText(rec.Text):
		return invalid("text", fmt.Sprintf("must be at most %d bytes of UTF-8 without NUL", limits.Text))
	case len(rec.Note) > limits.Note:
		return invalid("note", fmt.Sprintf("must be at most %d bytes long", limits.Note))
	case len(rec.Document) > maxBytes || len(rec.Private) > maxBytes-len(rec.Document):
		return invalid("", fmt.Sprintf("document and private part must be at most %d bytes long together", maxBytes))
	}
	return nil
}

func areTerms(terms []string) bool {
	for i, term := range terms {
		isAscending := i == 0 || term > terms[i-1]
		if !isAscending || term == "" || len(term) > limits.Term || !isText(term) {
			return false
		}
	}
	return len(terms) <= limits.Terms
}

func isText(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}
