package relayer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// switches are the members of a document that a pause or a disable changes.
type switches struct {
	isPaused, isDisabled bool
	reason               json.RawMessage // nil if there is none
}

func readSwitches(document []byte) (s switches) {
	for name, value := range strictjson.InOrder(document) {
		switch name {
		case "paused":
			s.isPaused = string(value) == "true"
		case "system_disabled":
			s.isDisabled = string(value) == "true"
		case "disabled_reason":
			s.reason = value
		}
	}
	return s
}

func (s switches) equals(other switches) bool {
	return s.isPaused == other.isPaused && s.isDisabled == other.isDisabled && bytes.Equal(s.reason, other.reason)
}

// writeTo returns the document with these switches. The reason follows
// system_disabled.
func (s switches) writeTo(document []byte) []byte {
	var changed strictjson.Object
	for name, value := range strictjson.InOrder(document) {
		switch name {
		case "disabled_reason":
			continue
		case "paused":
			value = strconv.AppendBool(nil, s.isPaused)
		case "system_disabled":
			value = strconv.AppendBool(nil, s.isDisabled)
		}
		changed.Add(name, value)
		if name == "system_disabled" && s.reason != nil {
			changed.Add("disabled_reason", s.reason)
		}
	}
	return changed.Bytes()
}

// terms returns the terms with those of these switches.
func (s switches) terms(stored []string) []string {
	r := &Relayer{Paused: s.isPaused, SystemDisabled: s.isDisabled}
	terms := slices.Clone(stored)
	for i, term := range terms {
		if name := termKey(term); name == "paused" || name == "system_disabled" {
			key, _ := selectorKeyNamed(name)
			value, _ := key.value(r)
			terms[i] = recordTerm(name, value)
		}
	}
	return terms // in order: a flag has one term
}
