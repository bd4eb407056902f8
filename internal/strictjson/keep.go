package strictjson

import (
	"bytes"
	"maps"
	"slices"
	"unicode/utf8"
)

// KeepUnknown returns changed, an object, with the members of stored that the types of the caller
// do not have. known is stored, decoded into these types and encoded like changed. All three are
// valid JSON.
//
// A value that is equal in known and changed keeps its stored form. An object that was changed
// keeps the members that known does not have, after its own. A list that was changed is that of
// changed, and so are the members at the top that are named in replaced.
func KeepUnknown(stored, known, changed []byte, replaced ...string) []byte {
	stored = bytes.TrimSpace(stored)
	if bytes.Equal(stored, known) {
		return changed
	}
	before, of := maps.Collect(InOrder(stored)), maps.Collect(InOrder(known))
	if bytes.Equal(known, changed) && len(replaced) == 0 {
		return stored
	}
	merged := new(Object)
	names := make(map[string]bool)
	for name, value := range InOrder(changed) {
		names[name] = true
		if !slices.Contains(replaced, name) {
			value = keepValue(before[name], of[name], value)
		}
		merged.Add(name, value)
	}
	for name, value := range InOrder(stored) {
		if !names[name] && of[name] == nil && !slices.Contains(replaced, name) {
			merged.Add(name, value)
		}
	}
	return merged.Bytes()
}

func keepValue(stored, known, changed []byte) []byte {
	switch {
	case stored == nil || known == nil:
		return changed
	case bytes.Equal(known, changed):
		return stored
	case stored[0] == '{' && known[0] == '{' && changed[0] == '{':
		return KeepUnknown(stored, known, changed)
	default:
		return changed
	}
}

// Object encodes an object whose members are encoded already. The zero value is empty.
type Object struct{ encoded []byte }

// Add adds a member after the others.
func (o *Object) Add(name string, value []byte) {
	if o.encoded == nil {
		o.encoded = make([]byte, 0, 1024) // the size of a document
	}
	o.encoded = append(o.encoded, ',')
	if isPlain(name) {
		o.encoded = append(append(append(o.encoded, '"'), name...), '"')
	} else {
		quoted, _ := Encode(name) // a string always has an encoding
		o.encoded = append(o.encoded, quoted...)
	}
	o.encoded = append(o.encoded, ':')
	o.encoded = append(o.encoded, value...)
}

// isPlain reports whether a text is its own encoding between quotes.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Bytes returns the object.
func (o *Object) Bytes() []byte {
	if len(o.encoded) == 0 {
		return []byte("{}")
	}
	o.encoded[0] = '{'
	return append(o.encoded, '}')
}

// ReplaceMember returns an object in which replace has replaced the value of a member. All
// else stays as it is, except white space.
func ReplaceMember(data []byte, name string, replace func(value []byte) []byte) []byte {
	replaced := new(Object)
	for member, value := range InOrder(data) {
		if member == name {
			value = replace(value)
		}
		replaced.Add(member, value)
	}
	return replaced.Bytes()
}
