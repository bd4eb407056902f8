package relayer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/cases"

	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Selector selects relayers by their fields: a filter of lists and change feeds, and the
// scope of a [Manager.Within]. The zero value selects all relayers. A Selector is immutable
// and safe for concurrent use.
//
// It consists of terms, which must all hold. A term has a key and values, and holds if the
// field has one of the values. [ParseSelector] and [Selector.Where] build a Selector. The keys are
//
//	id network network_type signer_id notification_id paused system_disabled
//
// and label.KEY for the label KEY. A value must be equal to the field; the values of paused and
// system_disabled are true and false. A term of the key "search" holds if the ID or about the
// first 900 bytes of the name contain one of its values, in any letter case. A search has at most
// 8 values of at most 128 characters, and a selector has one search at most.
//
// A Selector with an unknown key or a value that the field cannot have is invalid: it
// selects nothing, and every operation that gets it returns [Selector.Err].
type Selector struct {
	terms []selectorTerm // sorted by key, each key once
	err   error
}

type selectorTerm struct {
	key     string
	values  []string // sorted and distinct
	records []string // of an indexed key, sorted: the terms of the records that have one of the values
	folded  []string // of a search: the values in one letter case
}

// selectorKey is a key of a [Selector].
type selectorKey struct {
	name string

	// isIndexed reports whether records have a term of the key: IDs and searches are not terms.
	isIndexed bool

	// value returns the value of a relayer, or "" if it is not set. It is nil for labels and searches.
	value func(*Relayer) string

	// valueCode is the code of a value that the field cannot have, or of an unknown key.
	valueCode string

	// valueProblem returns why the field cannot have a value, or "".
	valueProblem func(value string) string
}

// Keys with special rules, and the prefix of the keys of labels.
const (
	keyID       = "id"
	keySearch   = "search"
	labelPrefix = "label."
)

// selectorKeys is the table of the keys, besides those of labels. A later version that adds an
// indexed key has to add its terms to the stored records first.
var selectorKeys = []selectorKey{
	{name: keyID, value: func(r *Relayer) string { return r.ID }, valueProblem: idProblem},
	{name: "network", isIndexed: true, valueProblem: requiredTextProblem, value: func(r *Relayer) string { return r.Network }},
	{name: "network_type", isIndexed: true, valueCode: strictjson.NotAllowed, value: func(r *Relayer) string { return string(r.NetworkType) }, valueProblem: networkTypeProblem},
	{name: "signer_id", isIndexed: true, valueProblem: requiredTextProblem, value: func(r *Relayer) string { return r.SignerID }},
	{name: "notification_id", isIndexed: true, valueProblem: requiredTextProblem, value: func(r *Relayer) string { return r.NotificationID }},
	{name: "paused", isIndexed: true, valueCode: strictjson.NotAllowed, value: func(r *Relayer) string { return strconv.FormatBool(r.Paused) }, valueProblem: flagProblem},
	{name: "system_disabled", isIndexed: true, valueCode: strictjson.NotAllowed, value: func(r *Relayer) string { return strconv.FormatBool(r.SystemDisabled) }, valueProblem: flagProblem},
	{name: keySearch, valueProblem: searchProblem},
}

// selectorKeyNamed returns the key, or why a [Selector] cannot have it.
func selectorKeyNamed(name string) (key selectorKey, problem string) {
	if label, isLabel := strings.CutPrefix(name, labelPrefix); isLabel {
		return selectorKey{name: name, isIndexed: true, valueProblem: labelValueProblem}, labelKeyProblem(label)
	}
	i := slices.IndexFunc(selectorKeys, func(k selectorKey) bool { return k.name == name })
	if i < 0 {
		return selectorKey{valueCode: strictjson.UnknownField}, "is not a known key of a selector"
	}
	return selectorKeys[i], ""
}

func flagProblem(value string) string {
	return problemIf(value != "true" && value != "false", "must be true or false")
}

func requiredTextProblem(value string) string {
	return cmp.Or(problemIf(value == "", "must not be empty"), strictjson.TextProblem(value))
}

func newTerm(key selectorKey, values []string) selectorTerm {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	t := selectorTerm{key: key.name, values: values}
	for _, value := range values {
		switch {
		case key.isIndexed:
			t.records = append(t.records, recordTerm(key.name, value))
		case key.name == keySearch:
			t.folded = append(t.folded, fold(value))
		}
	}
	slices.Sort(t.records) // a long value has a digest
	return t
}

// holds reports whether the term holds for a record.
func (t selectorTerm) holds(rec Record) bool {
	switch t.key {
	case keyID:
		return slices.Contains(t.values, rec.ID)
	case keySearch:
		return slices.ContainsFunc(t.folded, func(part string) bool { return strings.Contains(rec.Text, part) })
	}
	// A record has few terms, and a selector can have many values.
	return slices.ContainsFunc(rec.Terms, func(text string) bool {
		_, isPresent := slices.BinarySearch(t.records, text)
		return isPresent
	})
}

// noneSelected is the notation of a selector that has a term without values.
const noneSelected = "none"

// ParseSelector parses the notation of [Selector.String]:
//
//	network=sepolia,label.team=payments|risk
//
// The characters % , | are percent-encoded in values, and others can be. The empty text selects
// all relayers, and "none" selects nothing. A term "search=" without a text is an error: otherwise
// an unset variable in a configuration would select all relayers. The error is a [*ValidationError]
// whose field is the key, or the whole term if it has no =.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	switch text {
	case "":
		return s, nil
	case noneSelected:
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
		if key == keySearch && slices.Contains(values, "") {
			return Selector{}, invalid(key, "must not be empty: it would select all relayers")
		}
		s = s.Where(key, values...)
	}
	if s.err != nil {
		return Selector{}, s.err
	}
	return s, nil
}

// Where returns a selector that selects the relayers that s selects and that have one of the
// values. Two terms of a key keep only the values that both have. A second search is an error,
// unless it has the same values. A Where without values selects nothing. A search for "" adds no
// term.
func (s Selector) Where(key string, values ...string) Selector {
	if s.err != nil {
		return s
	}
	named, problem := selectorKeyNamed(key)
	if key == keySearch && len(values) > maxSearches {
		problem = fmt.Sprintf("must have at most %d values", maxSearches)
	}
	for i := 0; problem == "" && i < len(values); i++ {
		problem = named.valueProblem(values[i])
	}
	if problem != "" {
		return Selector{err: invalidAs(key, named.valueCode, problem)}
	}
	if key == keySearch && slices.Contains(values, "") {
		return s // every text contains the empty one
	}
	return s.with(newTerm(named, values))
}

// And returns a selector that selects what both select. Two searches that differ are an error.
func (s Selector) And(other Selector) Selector {
	if s.err != nil {
		return s
	}
	if other.err != nil || s.IsZero() {
		return other
	}
	for _, t := range other.terms {
		s = s.with(t)
	}
	return s
}

func (s Selector) with(added selectorTerm) Selector {
	if s.err != nil {
		return s
	}
	position, isPresent := slices.BinarySearchFunc(s.terms, added, func(a, b selectorTerm) int { return strings.Compare(a.key, b.key) })
	if !isPresent {
		return Selector{terms: slices.Insert(slices.Clone(s.terms), position, added)}
	}
	present := s.terms[position].values
	if added.key == keySearch {
		if slices.Equal(present, added.values) {
			return s
		}
		return Selector{err: invalid(keySearch, "must not be given twice with different values")}
	}
	key, _ := selectorKeyNamed(added.key)
	terms := slices.Clone(s.terms)
	isMissing := func(value string) bool { return !slices.Contains(added.values, value) }
	terms[position] = newTerm(key, slices.DeleteFunc(slices.Clone(present), isMissing))
	return Selector{terms: terms}
}

// Err returns the error of an invalid selector: a [*ValidationError], whose field is the
// key. Otherwise it returns nil.
func (s Selector) Err() error { return s.err }

// IsZero reports whether the selector has no terms, so that it selects all relayers.
func (s Selector) IsZero() bool { return len(s.terms) == 0 && s.err == nil }

// Terms returns the keys with their values, in the order of the keys. A term without values selects
// nothing. For an invalid selector it yields nothing: see [Selector.Err].
func (s Selector) Terms() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, t := range s.terms {
			if !yield(t.key, slices.Clone(t.values)) {
				return
			}
		}
	}
}

// String returns the notation that [ParseSelector] parses, with values encoded by
// [url.PathEscape]. Selectors with the same terms have the same notation. An invalid one is written
// as one that selects nothing.
func (s Selector) String() string {
	if s.selectsNothing() {
		return noneSelected
	}
	var terms []string
	for _, t := range s.terms {
		values := slices.Clone(t.values)
		for i, value := range values {
			values[i] = url.PathEscape(value)
		}
		terms = append(terms, t.key+"="+strings.Join(values, "|"))
	}
	return strings.Join(terms, ",")
}

// MarshalText returns the notation of [Selector.String], so that a selector can be a part of
// JSON. It returns the error of an invalid selector.
func (s Selector) MarshalText() ([]byte, error) {
	return []byte(s.String()), s.err
}

// UnmarshalText parses the notation of [ParseSelector]. The empty text is an error, although it
// is the notation of the zero Selector: a scope that is empty by mistake must not select all
// relayers. Leave the selector out instead, for example with omitzero in JSON. JSON null does not
// call it and leaves the selector as it is: check [Selector.IsZero] if it is required.
func (s *Selector) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return invalid("", "the selector must not be empty: leave it out to select all relayers")
	}
	parsed, err := ParseSelector(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

func (s Selector) selectsNothing() bool {
	return s.err != nil || slices.ContainsFunc(s.terms, func(t selectorTerm) bool { return len(t.values) == 0 })
}

// Matches reports whether the selector selects the relayer.
func (s Selector) Matches(r *Relayer) bool {
	return s.err == nil && !slices.ContainsFunc(s.terms, func(t selectorTerm) bool { return !t.matches(r) })
}

func (t selectorTerm) matches(r *Relayer) bool {
	if t.key == keySearch {
		return t.holds(Record{Text: searchText(r)})
	}
	if label, isLabel := strings.CutPrefix(t.key, labelPrefix); isLabel {
		value, isSet := r.Labels[label]
		return isSet && slices.Contains(t.values, value)
	}
	key, _ := selectorKeyNamed(t.key)
	return slices.Contains(t.values, key.value(r)) // no value is empty
}

// selects reports whether the selector selects a record.
func (s Selector) selects(rec Record) bool {
	return s.err == nil && !slices.ContainsFunc(s.terms, func(t selectorTerm) bool { return !t.holds(rec) })
}

// checkScope returns a [*ValidationError] with terms that do not hold for a record that is to be
// stored.
func (s Selector) checkScope(rec Record) error {
	if s.err != nil {
		return s.err
	}
	found := new(problems)
	if s.selectsNothing() {
		found.Add("", "the access is limited to no relayer")
		return found.err()
	}
	for _, t := range s.terms {
		if t.holds(rec) {
			continue
		}
		var quoted []string
		for _, value := range t.values {
			quoted = append(quoted, strconv.Quote(value))
		}
		found.Add(t.field(), "must be "+strings.Join(quoted, " or ")+", to which the access is limited")
	}
	return found.err()
}

// field returns the path of the field of a key.
func (t selectorTerm) field() string {
	if label, isLabel := strings.CutPrefix(t.key, labelPrefix); isLabel {
		return strictjson.Join("labels", label)
	}
	return t.key
}

// member returns the member of a document that has the field.
func (t selectorTerm) member() string {
	if strings.HasPrefix(t.key, labelPrefix) {
		return "labels"
	}
	return t.key
}

// narrow returns the query for what both it and s select. A query has no IDs of its own: the
// selectors of a list and of views are one.
func (s Selector) narrow(q StoreQuery) StoreQuery {
	q.DocumentsOnly = false // the result is checked
	q.Terms = slices.Clone(q.Terms)
	if s.selectsNothing() {
		q.Terms = append(q.Terms, []string{})
		return q
	}
	for _, t := range s.terms {
		switch t.key {
		case keyID:
			q.IDs = t.values
		case keySearch:
			q.Contains = t.folded
		default:
			q.Terms = append(q.Terms, t.records)
		}
	}
	return q
}

// bind returns a position that resumes only a watch of the same selection: changes that the
// selection skips would otherwise be missing in another one.
func (s Selector) bind(position string) string {
	if position == "" {
		return position
	}
	return position + s.mark()
}

func (s Selector) mark() string {
	digest := sha256.Sum256([]byte(s.String()))
	return "~" + hex.EncodeToString(digest[:8])
}

const (
	// textSeparator separates the parts of the text of a record. No search contains it.
	textSeparator = "\x1f"

	// maxSearchedName is how many bytes of a name are searched at most.
	maxSearchedName = 900
)

// searchText returns the text in which searches look for their values.
func searchText(r *Relayer) string {
	return mask.Shortened(fold(r.ID+textSeparator+mask.Shortened(r.Name, maxSearchedName)), limits.Text)
}

func fold(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return cases.Fold().String(text)
	}
	return strings.ToLower(text)
}

// The limits of searches.
const (
	maxSearches     = 8
	maxSearchLength = 128 // characters
)

func searchProblem(value string) string {
	separator := problemIf(strings.Contains(value, textSeparator), "must not contain the control character U+001F")
	return cmp.Or(textProblem(value, maxSearchLength), separator)
}

// recordTerm returns the term of a record whose field has the value. A long value is replaced by
// its digest. A key contains neither = nor #, so the two cannot be confused.
func recordTerm(key, value string) string {
	if text := key + "=" + value; len(text) <= limits.Term {
		return text
	}
	digest := sha256.Sum256([]byte(value))
	return key + "#" + hex.EncodeToString(digest[:])
}
