package relayer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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
// first 900 bytes of the name contain one of its values, in any letter case. It has at most
// 8 values of at most 128 characters, and a selector has one such term at most.
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

	// value returns the value of a relayer, or false if it is not set.
	value func(*Relayer) (value string, isSet bool)

	// valueCode is the code of a value that the field cannot have.
	valueCode string

	// valueProblem returns why the field cannot have a value, or "". If it is nil, the value
	// must be a text that is not empty.
	valueProblem func(value string) string
}

// The keys of selectors that need a treatment of their own.
const (
	keyID       = "id"
	keySearch   = "search"
	labelPrefix = "label."
)

// selectorKeys is the table of the keys, besides those of labels. A later version that adds an
// indexed key has to add its terms to the stored records first.
var selectorKeys = []selectorKey{
	{name: keyID, value: func(r *Relayer) (string, bool) { return r.ID, true }, valueProblem: idProblem},
	{name: "network", isIndexed: true, value: func(r *Relayer) (string, bool) { return r.Network, true }},
	{name: "network_type", isIndexed: true, valueCode: strictjson.NotAllowed, value: func(r *Relayer) (string, bool) { return string(r.NetworkType), true }, valueProblem: networkTypeProblem},
	{name: "signer_id", isIndexed: true, value: func(r *Relayer) (string, bool) { return r.SignerID, true }},
	{name: "notification_id", isIndexed: true, value: func(r *Relayer) (string, bool) { return r.NotificationID, r.NotificationID != "" }},
	{name: "paused", isIndexed: true, valueCode: strictjson.NotAllowed, value: func(r *Relayer) (string, bool) { return strconv.FormatBool(r.Paused), true }, valueProblem: flagProblem},
	{name: "system_disabled", isIndexed: true, valueCode: strictjson.NotAllowed, value: func(r *Relayer) (string, bool) { return strconv.FormatBool(r.SystemDisabled), true }, valueProblem: flagProblem},
	{name: keySearch, valueProblem: searchProblem},
}

// isSelectorKey reports whether a [Selector] can have the key: whether its name is known.
func isSelectorKey(key string) bool {
	_, isLabel := strings.CutPrefix(key, labelPrefix)
	return isLabel || slices.ContainsFunc(selectorKeys, func(k selectorKey) bool { return k.name == key })
}

// selectorKeyNamed returns the key, or why it is none.
func selectorKeyNamed(name string) (key selectorKey, problem string) {
	if label, isLabel := strings.CutPrefix(name, labelPrefix); isLabel {
		return labelSelectorKey(label), labelKeyProblem(label)
	}
	i := slices.IndexFunc(selectorKeys, func(k selectorKey) bool { return k.name == name })
	if i < 0 {
		return selectorKey{}, "is not a known key of a selector"
	}
	return selectorKeys[i], ""
}

func labelSelectorKey(label string) selectorKey {
	return selectorKey{
		name: labelPrefix + label, isIndexed: true, valueProblem: labelValueProblem,
		value: func(r *Relayer) (string, bool) {
			value, isSet := r.Labels[label]
			return value, isSet
		},
	}
}

// problem returns why a term of the key cannot have the values, or "".
func (k selectorKey) problem(values []string) string {
	if k.name == keySearch && len(values) > maxSearches {
		return fmt.Sprintf("must have at most %d values", maxSearches)
	}
	valueProblem := k.valueProblem
	if valueProblem == nil {
		valueProblem = requiredTextProblem
	}
	for _, value := range values {
		if problem := valueProblem(value); problem != "" {
			return problem
		}
	}
	return ""
}

func flagProblem(value string) string {
	if value != "true" && value != "false" {
		return "must be true or false"
	}
	return ""
}

func requiredTextProblem(value string) string {
	if value == "" {
		return "must not be empty"
	}
	return strictjson.TextProblem(value)
}
