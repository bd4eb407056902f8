package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Encode encodes value as it is served: without the escapes for HTML and without a final newline.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// CopyFields sets the fields of the struct that to points to from those of the same name of the
// struct that from points to.
func CopyFields(to, from any) {
	target, source := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range target.NumField() {
		if field := source.FieldByName(target.Type().Field(i).Name); field.IsValid() {
			target.Field(i).Set(field)
		}
	}
}

// Print prints the JSON form of value, and so values instead of the addresses that fmt prints
// for pointers in fields. It does not fall back to fmt, which would print URLs in full for a
// verb that does not fit.
func Print(state fmt.State, value any) {
	text, err := Encode(value)
	if err != nil {
		text = []byte("%!v(" + err.Error() + ")")
	}
	// A fmt.State reports no errors.
	_, _ = state.Write(text)
}

// KeepUnknown returns changed with the members of objects in stored that the types of the caller do
// not have. known is stored, decoded into these types and encoded like changed. All three are
// valid JSON.
//
// A value below the top that is equal in known and changed keeps its stored form. An object that
// was changed keeps the members that known does not have, after its own. A list that was changed
// is taken from changed, and so are the members at the top that are named in replaced.
func KeepUnknown(stored, known, changed []byte, replaced ...string) []byte {
	stored = bytes.TrimSpace(stored)
	isObject := func(value []byte) bool { return len(value) > 0 && value[0] == '{' }
	switch {
	case len(stored) == 0 || len(known) == 0 || bytes.Equal(stored, known):
		return changed
	case bytes.Equal(known, changed) && len(replaced) == 0:
		return stored
	case !isObject(stored) || !isObject(known) || !isObject(changed):
		return changed
	}
	before, of, after := maps.Collect(InOrder(stored)), maps.Collect(InOrder(known)), maps.Collect(InOrder(changed))
	merged := new(Object)
	for name, value := range InOrder(changed) {
		if !slices.Contains(replaced, name) {
			value = KeepUnknown(before[name], of[name], value)
		}
		merged.Add(name, value)
	}
	for name, value := range InOrder(stored) {
		if after[name] == nil && of[name] == nil && !slices.Contains(replaced, name) {
			merged.Add(name, value)
		}
	}
	return merged.Bytes()
}

// Object encodes an object whose members are encoded already. The zero value is empty.
type Object struct{ encoded []byte }

// Add adds a member after the others.
func (o *Object) Add(name string, value []byte) {
	if o.encoded == nil {
		o.encoded = make([]byte, 0, 1024) // the size of a document
	}
	o.encoded = append(o.encoded, ',')
	if isPlain := !strings.ContainsFunc(name, needsEscape); isPlain {
		o.encoded = append(append(append(o.encoded, '"'), name...), '"')
	} else {
		quoted, _ := Encode(name) // a string always has an encoding
		o.encoded = append(o.encoded, quoted...)
	}
	o.encoded = append(o.encoded, ':')
	o.encoded = append(o.encoded, value...)
}

func needsEscape(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= utf8.RuneSelf }

// Bytes returns the object.
func (o *Object) Bytes() []byte {
	if len(o.encoded) == 0 {
		return []byte("{}")
	}
	o.encoded[0] = '{'
	return append(o.encoded, '}')
}

// ReplaceMember returns an object with another value of a member. All else stays as it is, except
// white space and escapes of names.
func ReplaceMember(data []byte, name string, value []byte) []byte {
	replaced := new(Object)
	for member, current := range InOrder(data) {
		if member == name {
			current = value
		}
		replaced.Add(member, current)
	}
	return replaced.Bytes()
}

// MergePatch applies a JSON Merge Patch to target: the function of that name in RFC
// 7396 section 2. Both are valid JSON.
func MergePatch(target, patch json.RawMessage) json.RawMessage {
	changes, ok := Members(patch)
	if !ok {
		return patch
	}
	merged, ok := Members(target)
	if !ok {
		merged = make(map[string]json.RawMessage)
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(merged, name)
		} else {
			merged[name] = MergePatch(merged[name], change)
		}
	}
	encoded, _ := Encode(merged)
	return encoded
}

// Canonical returns the same bytes for values that differ only in the order of members, in white space
// and in escapes.
func Canonical(value json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var decoded any
	_ = decoder.Decode(&decoded) // it is valid JSON
	encoded, _ := Encode(decoded)
	return encoded
}

// Members returns the members of a JSON object, and false if value is not one.
func Members(value json.RawMessage) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(value, &members)
	return members, err == nil && members != nil
}

// Diff returns the merge patch that changes one object into another without nulls: null for a
// member that is missing in changed. Members of both are compared byte by byte. The patch is
// empty if the objects have equal bytes.
func Diff(object, changed json.RawMessage) map[string]any {
	before, _ := Members(object)
	after, _ := Members(changed)
	patch := make(map[string]any)
	for name := range before {
		if _, ok := after[name]; !ok {
			patch[name] = nil
		}
	}
	for name, value := range after {
		if bytes.Equal(before[name], value) {
			continue
		}
		_, wasObject := Members(before[name])
		if _, isObject := Members(value); wasObject && isObject {
			patch[name] = Diff(before[name], value)
			continue
		}
		patch[name] = value
	}
	return patch
}
