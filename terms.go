package relayer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer/internal/limits"
)

// The keys of terms that no selector has.
const (
	// claimTerm makes a dry run find the holder of a claim.
	claimTerm = "claim"

	// versionTerm is the version of the terms of a record.
	versionTerm = "terms"
)

// recordTerm returns the term of a record whose field has the value. A long value is
// replaced by its digest. A key contains neither = nor #, so that the two cannot be
// confused.
func recordTerm(key, value string) string {
	if text := key + "=" + value; len(text) <= limits.Term {
		return text
	}
	digest := sha256.Sum256([]byte(value))
	return key + "#" + hex.EncodeToString(digest[:])
}

// termKey returns the key of a term.
func termKey(term string) string {
	if end := strings.IndexAny(term, "=#"); end >= 0 {
		return term[:end]
	}
	return term
}

// termsVersion is the version of the terms that this version of the package writes.
func termsVersion() int {
	version := 1
	for _, key := range selectorKeys {
		version = max(version, key.since)
	}
	return version
}

// termsVersionOf returns the version of the terms of a record.
func termsVersionOf(terms []string) int {
	const prefix = versionTerm + "="
	i, _ := slices.BinarySearch(terms, prefix)
	if i == len(terms) || !strings.HasPrefix(terms[i], prefix) {
		return 0
	}
	version, _ := strconv.Atoi(terms[i][len(prefix):])
	return version
}

// termsOf returns the terms of a relayer, with the claim of its record.
func termsOf(r *Relayer, claim string) []string {
	terms := make([]string, 0, len(selectorKeys)+len(r.Labels)+1)
	for _, key := range selectorKeys {
		if !key.isIndexed() {
			continue
		}
		if value, isSet := key.value(r); isSet {
			terms = append(terms, recordTerm(key.name, value))
		}
	}
	for key, value := range r.Labels {
		terms = append(terms, recordTerm(labelPrefix+key, value))
	}
	if claim != "" {
		terms = append(terms, recordTerm(claimTerm, claim))
	}
	terms = append(terms, recordTerm(versionTerm, strconv.Itoa(termsVersion())))
	slices.Sort(terms)
	return terms
}

// withUnknownTerms adds the terms of the stored record whose keys this version does not
// have: instances of a host are upgraded one after the other, and the older ones must not
// remove what the newer ones select by.
func withUnknownTerms(terms, stored []string) []string {
	version := termsVersionOf(stored)
	if version <= termsVersion() {
		return terms
	}
	terms = slices.DeleteFunc(terms, func(term string) bool { return termKey(term) == versionTerm })
	for _, term := range stored {
		key := termKey(term)
		if key == versionTerm || key != claimTerm && !isSelectorKey(key) {
			terms = append(terms, term)
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms)
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

// termsBefore returns the terms of records whose version of the terms is an earlier one.
func termsBefore(version int) []string {
	terms := []string{}
	for earlier := 1; earlier < version; earlier++ {
		terms = append(terms, recordTerm(versionTerm, strconv.Itoa(earlier)))
	}
	return terms
}

func outdatedTermsError(key string) error {
	return fmt.Errorf("relayer: an earlier version stored relayers that cannot be selected by %s yet: call Manager.Reindex (relayerd does at its start)", key)
}
