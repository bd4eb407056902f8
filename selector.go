package relayer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Selector selects relayers by their fields: a filter of lists and change feeds, and the
// scope of a [Manager.Within]. The zero value selects all relayers. A Selector is immutable
// and safe for concurrent use.
//
// It consists of terms, which must all hold. A term has a key and values, and holds if the
// field has one of the values. The keys are
//
//	id network network_type signer_id notification_id paused system_disabled
//
// and label.KEY for the label KEY. A value must be equal to the field; those of paused and
// system_disabled are true and false. The term of the key search holds if the ID or the
// name contains one of its values, in any letter case.
//
// A Selector with an unknown key or a value that the field cannot have is invalid: it
// selects nothing, and every operation that gets it returns [Selector.Err].
type Selector struct {
	terms []term // sorted by key, each key once except search
	err   error
}

type term struct {
	key     string
	values  []string // sorted and distinct
	records []string // the terms of the records that have one of the values
}

func newTerm(key string, values []string) term {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	t := term{key: key, values: values}
	if key == keyID || key == keySearch {
		return t
	}
	t.records = make([]string, 0, len(values))
	for _, value := range values {
		t.records = append(t.records, recordTerm(key, value))
	}
	return t
}

// holds reports whether the term, unless it is a search, holds for a record.
func (t term) holds(id string, terms []string) bool {
	switch t.key {
	case keyID:
		return slices.Contains(t.values, id)
	case keySearch:
		return true
	default:
		return slices.ContainsFunc(t.records, func(text string) bool {
			_, isPresent := slices.BinarySearch(terms, text)
			return isPresent
		})
	}
}

// The keys of selectors that need a treatment of their own.
const (
	keyID       = "id"
	keySearch   = "search"
	labelPrefix = "label."
)

// selectsNothing is the notation of a selector that has a term without values.
const selectsNothing = "none"

// ParseSelector parses the notation of [Selector.String]:
//
//	network=sepolia,label.team=payments|risk
//
// The characters % , | and spaces are percent-encoded in values. The empty text selects all
// relayers, and "none" selects nothing. The error is a [*ValidationError], whose fields are
// keys.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	switch text {
	case "":
		return s, nil
	case selectsNothing:
		return s.Where(keyID), nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, list, hasValues := strings.Cut(part, "=")
		if !hasValues {
			return Selector{}, invalid(part, "must have the form KEY=VALUE")
		}
		var values []string
		for encoded := range strings.SplitSeq(list, "|") {
			value, err := url.PathUnescape(encoded)
			if err != nil {
				return Selector{}, invalid(key, "must have % only before two hexadecimal digits: write %25 for %")
			}
			values = append(values, value)
		}
		s = s.Where(key, values...)
	}
	if s.err != nil {
		return Selector{}, s.err
	}
	return s, nil
}

// Where returns a selector that selects what s selects and what has one of the values. A
// second term of a key leaves the values that both have; two terms of search must both hold.
// Without values it selects nothing.
func (s Selector) Where(key string, values ...string) Selector {
	if s.err != nil {
		return s
	}
	if problem := selectorKeyProblem(key); problem != "" {
		return Selector{err: invalid(key, problem)}
	}
	for _, value := range values {
		if problem := selectorValueProblem(key, value); problem != "" {
			return Selector{err: invalid(key, problem)}
		}
	}
	if key == keySearch && slices.Contains(values, "") {
		return s // every text contains the empty one
	}
	return Selector{terms: withTerm(s.terms, newTerm(key, values))}
}

// And returns a selector that selects what both select.
func (s Selector) And(other Selector) Selector {
	if s.err != nil {
		return s
	}
	if other.err != nil || s.IsZero() {
		return other
	}
	for _, t := range other.terms {
		s.terms = withTerm(s.terms, t)
	}
	return s
}

func withTerm(terms []term, added term) []term {
	position, isPresent := slices.BinarySearchFunc(terms, added, func(a, b term) int {
		if a.key == keySearch && b.key == keySearch {
			return slices.Compare(a.values, b.values)
		}
		return strings.Compare(a.key, b.key)
	})
	if !isPresent {
		return slices.Insert(slices.Clone(terms), position, added)
	}
	terms = slices.Clone(terms)
	inBoth := slices.DeleteFunc(slices.Clone(terms[position].values), func(value string) bool { return !slices.Contains(added.values, value) })
	terms[position] = newTerm(added.key, inBoth)
	return terms
}

func selectorKeyProblem(key string) string {
	if key == keyID || key == keySearch || slices.Contains(fields, key) {
		return ""
	}
	label, isLabel := strings.CutPrefix(key, labelPrefix)
	if !isLabel {
		return "is not a known key of a selector"
	}
	return labelKeyProblem(label)
}

// selectorValueProblem returns why the field of the key cannot have the value, or "".
func selectorValueProblem(key, value string) string {
	switch key {
	case "paused", "system_disabled":
		if value != "true" && value != "false" {
			return "must be true or false"
		}
	case "network_type":
		if newPolicy(NetworkType(value)) == nil {
			return "must be one of evm, solana, stellar"
		}
	case keyID:
		if !IsID(value) {
			return "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"
		}
	}
	if strings.HasPrefix(key, labelPrefix) {
		return labelValueProblem(value)
	}
	if value == "" && key != keySearch {
		return "must not be empty"
	}
	return strictjson.TextProblem(value)
}

// Err returns the error of an invalid selector: a [*ValidationError], whose field is the
// key. Otherwise it returns nil.
func (s Selector) Err() error { return s.err }

// IsZero reports whether the selector has no terms, so that it selects all relayers.
func (s Selector) IsZero() bool { return len(s.terms) == 0 && s.err == nil }

// Terms returns the keys with their values, in the order of the keys. Only the key search
// may occur more than once. A term without values selects nothing.
func (s Selector) Terms() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, t := range s.terms {
			if !yield(t.key, slices.Clone(t.values)) {
				return
			}
		}
	}
}

// String returns the notation that [ParseSelector] parses. Selectors with the same terms
// have the same notation.
func (s Selector) String() string {
	if s.selectsNothing() {
		return selectsNothing
	}
	var text strings.Builder
	for i, t := range s.terms {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(t.key + "=")
		for j, value := range t.values {
			if j > 0 {
				text.WriteByte('|')
			}
			text.WriteString(encodeValue(value))
		}
	}
	return text.String()
}

func (s Selector) selectsNothing() bool {
	return s.err != nil || slices.ContainsFunc(s.terms, func(t term) bool { return len(t.values) == 0 })
}

func encodeValue(value string) string {
	var text strings.Builder
	for _, r := range value {
		if strings.ContainsRune("%,|", r) || unicode.IsSpace(r) || unicode.IsControl(r) {
			text.WriteString(url.PathEscape(string(r)))
			continue
		}
		text.WriteRune(r)
	}
	return text.String()
}

// Matches reports whether the selector selects the relayer.
func (s Selector) Matches(r *Relayer) bool {
	return s.err == nil && !slices.ContainsFunc(s.terms, func(t term) bool { return !t.matches(r) }) && s.matchesText(r.ID, r.Name)
}

// matches reports whether the term, unless it is a search, holds for the relayer.
func (t term) matches(r *Relayer) bool {
	if t.key == keySearch {
		return true
	}
	value, isSet := fieldOf(r, t.key)
	return isSet && slices.Contains(t.values, value)
}

// fieldOf returns the value of the field that a key names, or false if it is not set.
func fieldOf(r *Relayer, key string) (value string, isSet bool) {
	switch key {
	case keyID:
		return r.ID, true
	case "network":
		return r.Network, true
	case "network_type":
		return string(r.NetworkType), true
	case "signer_id":
		return r.SignerID, true
	case "notification_id":
		return r.NotificationID, r.NotificationID != ""
	case "paused":
		return strconv.FormatBool(r.Paused), true
	case "system_disabled":
		return strconv.FormatBool(r.SystemDisabled), true
	}
	value, isSet = r.Labels[strings.TrimPrefix(key, labelPrefix)]
	return value, isSet
}

// matchesTerms reports whether the selector, without its searches, selects a record.
func (s Selector) matchesTerms(id string, terms []string) bool {
	return s.err == nil && !slices.ContainsFunc(s.terms, func(t term) bool { return !t.holds(id, terms) })
}

// matchesText reports whether all searches of the selector find the relayer.
func (s Selector) matchesText(id, name string) bool {
	if !s.hasSearch() {
		return true
	}
	text := folded(id + "\x00" + name) // no value contains the separator
	for _, t := range s.terms {
		if t.key != keySearch {
			continue
		}
		if !slices.ContainsFunc(t.values, func(value string) bool { return strings.Contains(text, folded(value)) }) {
			return false
		}
	}
	return true
}

// findsRecord reports whether all searches of the selector find the record. A damaged
// document has no name.
func (s Selector) findsRecord(rec Record) bool {
	if !s.hasSearch() {
		return true
	}
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(rec.Document, &named)
	return s.matchesText(rec.ID, named.Name)
}

func folded(text string) string { return cases.Fold().String(text) }

// checkScope adds a problem for every term that does not hold for a record that is to be
// stored.
func (s Selector) checkScope(id string, terms []string, found *problems) {
	if s.selectsNothing() {
		found.Add("", "the access is limited to no relayer")
		return
	}
	for _, t := range s.terms {
		if t.holds(id, terms) {
			continue
		}
		field := t.key
		if label, isLabel := strings.CutPrefix(t.key, labelPrefix); isLabel {
			field = strictjson.Join("labels", label)
		}
		found.Add(field, "must be "+strings.Join(quoted(t.values), " or ")+", to which the access is limited")
	}
}

func quoted(values []string) []string {
	var texts []string
	for _, value := range values {
		texts = append(texts, strconv.Quote(value))
	}
	return texts
}

func (s Selector) hasSearch() bool {
	return slices.ContainsFunc(s.terms, func(t term) bool { return t.key == keySearch })
}

// query returns the query that selects what s selects, except that it ignores searches.
func (s Selector) query() StoreQuery {
	var q StoreQuery
	for _, t := range s.terms {
		switch t.key {
		case keyID:
			q.IDs = t.values
		case keySearch:
		default:
			q.Terms = append(q.Terms, t.records)
		}
	}
	return q
}

// recordTerm returns the term of a record whose field has the value. A long value is
// replaced by its digest. A key contains neither = nor #, so that the two cannot be
// confused.
func recordTerm(key, value string) string {
	if text := key + "=" + value; len(text) <= MaxTermLength {
		return text
	}
	digest := sha256.Sum256([]byte(value))
	return key + "#" + hex.EncodeToString(digest[:])
}

// fields are the keys of the terms of a record, besides its labels.
var fields = []string{"network", "network_type", "signer_id", "notification_id", "paused", "system_disabled"}

func termsOf(r *Relayer) []string {
	terms := make([]string, 0, len(fields)+len(r.Labels))
	for _, key := range fields {
		if value, isSet := fieldOf(r, key); isSet {
			terms = append(terms, recordTerm(key, value))
		}
	}
	for key, value := range r.Labels {
		terms = append(terms, recordTerm(labelPrefix+key, value))
	}
	slices.Sort(terms)
	return terms
}
