package strictjson

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Identity identifies an object, which decides whether unknown members of a stored
// object belong to a changed one. index is -1 for the member of an object, and otherwise
// the position in the array that is the member. Without a rule for it, an object has the
// empty identity, and elements are matched in order.
type Identity func(member string, index int, value []byte) string

// KeepUnknown returns changed with the members of stored that the types of the caller do
// not have. known is stored, decoded into these types and encoded like changed. All three
// are valid JSON.
//
// A value that is equal in known and changed keeps its stored form. An object that was
// changed keeps the members that known does not have, after its own, if it has the same
// identity. Everything else is that of changed.
func KeepUnknown(stored, known, changed []byte, ofKnown, ofChanged Identity) []byte {
	stored = bytes.TrimSpace(stored)
	if bytes.Equal(stored, known) {
		return changed
	}
	return keeper{ofKnown, ofChanged}.value("", stored, known, changed)
}

type keeper struct{ ofKnown, ofChanged Identity }

func (k keeper) value(name string, stored, known, changed []byte) []byte {
	switch {
	case allBeginWith('{', stored, known, changed):
		return k.object(stored, known, changed)
	case allBeginWith('[', stored, known, changed):
		return k.array(name, stored, known, changed)
	case bytes.Equal(known, changed):
		return stored
	}
	return changed
}

func allBeginWith(first byte, values ...[]byte) bool {
	for _, value := range values {
		if len(value) == 0 || value[0] != first {
			return false
		}
	}
	return true
}

func (k keeper) object(stored, known, changed []byte) []byte {
	storedMembers, knownMembers := membersByName(stored), membersByName(known)
	merged, left, isSame := new(Object), len(knownMembers), true
	for name, value := range InOrder(changed) {
		before, isKnown := knownMembers[name]
		if isKnown {
			left--
		}
		original, isStored := storedMembers[name]
		if isKnown && isStored && k.ofKnown(name, -1, before) == k.ofChanged(name, -1, value) {
			value = k.value(name, original, before, value)
		}
		if isStored {
			before = original
		}
		isSame = isSame && isKnown && bytes.Equal(value, before)
		merged.Add(name, value)
		knownMembers[name] = value
	}
	if isSame && left == 0 {
		return stored // in its own order
	}
	for name, value := range InOrder(stored) {
		if _, isKnown := knownMembers[name]; !isKnown {
			merged.Add(name, value)
		}
	}
	return merged.Bytes()
}

// array matches the elements of changed with those of known by their identities.
func (k keeper) array(name string, stored, known, changed []byte) []byte {
	storedElements, knownElements := slices.Collect(elements(stored)), slices.Collect(elements(known))
	if len(storedElements) != len(knownElements) {
		return changed
	}
	positions := make(map[string][]int)
	for i, element := range knownElements {
		identity := k.ofKnown(name, i, element)
		positions[identity] = append(positions[identity], i)
	}
	var merged [][]byte
	for element := range elements(changed) {
		identity := k.ofChanged(name, len(merged), element)
		if same := positions[identity]; len(same) > 0 {
			positions[identity] = same[1:]
			element = k.value("", storedElements[same[0]], knownElements[same[0]], element)
		}
		merged = append(merged, element)
	}
	if slices.EqualFunc(merged, storedElements, bytes.Equal) {
		return stored
	}
	return slices.Concat([]byte{'['}, bytes.Join(merged, []byte{','}), []byte{']'})
}

func membersByName(object []byte) map[string][]byte {
	byName := make(map[string][]byte)
	for name, value := range InOrder(object) {
		byName[name] = value
	}
	return byName
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

// ReplaceElements returns an array in which replace has replaced the elements.
func ReplaceElements(data []byte, replace func(value []byte) []byte) []byte {
	replaced := []byte{'['}
	for value := range elements(data) {
		if len(replaced) > 1 {
			replaced = append(replaced, ',')
		}
		replaced = append(replaced, replace(value)...)
	}
	return append(replaced, ']')
}
