package relayer

import (
	"slices"
	"strings"
)

// claimTerm is the key of a term that no selector has: it makes a dry run find the holder
// of a claim.
const claimTerm = "claim"

// termKey returns the key of a term.
func termKey(term string) string {
	if end := strings.IndexAny(term, "=#"); end >= 0 {
		return term[:end]
	}
	return term
}

// termsOf returns the terms of a relayer, with the claim of its record.
func termsOf(r *Relayer, claim string) []string {
	terms := make([]string, 0, len(selectorKeys)+len(r.Labels)+1)
	for _, key := range selectorKeys {
		if key.isIndexed && key.value(r) != "" {
			terms = append(terms, recordTerm(key.name, key.value(r)))
		}
	}
	for key, value := range r.Labels {
		terms = append(terms, recordTerm(labelPrefix+key, value))
	}
	if claim != "" {
		terms = append(terms, recordTerm(claimTerm, claim))
	}
	slices.Sort(terms)
	return terms
}

// withClaim returns the record with a claim, which is a term too.
func withClaim(rec Record, claim string) Record {
	rec.Terms = slices.DeleteFunc(slices.Clone(rec.Terms), func(term string) bool { return termKey(term) == claimTerm })
	if rec.Claim = claim; claim != "" {
		rec.Terms = append(rec.Terms, recordTerm(claimTerm, claim))
		slices.Sort(rec.Terms)
	}
	return rec
}
