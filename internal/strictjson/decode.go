// Package strictjson decodes JSON into structs and reports the problems of a document at once,
// each with the path of its field. It accepts only what can be read in one way: valid UTF-8,
// names that match exactly and occur once, no unknown names, values without NUL and without half
// surrogate pairs.
//
// The fields of a struct are named by their json tags. A field is required unless it is a
// pointer, a slice, or tagged wire:"optional". A string tagged wire:"nonempty" must not be empty
// if it is given. A field tagged wire:"initial" cannot be changed by a patch, and no document has
// a field tagged wire:"readonly". Null means omitted. Integers are whole numbers of 0 or more, in
// any notation that [Whole] reads.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The codes of problems, which programs may compare.
const (
	Required     = "required"
	UnknownField = "unknown_field"
	Duplicate    = "duplicate"
	WrongType    = "wrong_type"
	OutOfRange   = "out_of_range"
	NotAllowed   = "not_allowed" // not one of the possible values
	Immutable    = "immutable"
)

// Decoder decodes checked JSON into structs and reports problems with their paths. A Decoder is
// not safe for concurrent use.
type Decoder struct {
	// Problems receives the problems. Required.
	Problems *Problems

	// Hook reads a value instead of the decoder, unless it returns false. It gets a pointer to the
	// target, which has the value before. Optional.
	Hook func(v Value, target any) (isRead bool)

	// IsPatch decodes a JSON Merge Patch (RFC 7396) into the value that it changes: null
	// clears a field or removes a member of a map, and lists are replaced whole. Required
	// fields may be missing, except in objects that the patch adds. What the value refers to is
	// replaced, and not modified.
	IsPatch bool
}

// Decode decodes data, an object accepted by [Check], into the struct that into
// points to. Decode may be called any number of times.
func (d *Decoder) Decode(data []byte, into any) {
	Value{decoder: d, data: data, isPatch: d.IsPatch}.Object(into)
}

// Value is one value of a document.
type Value struct {
	decoder *Decoder
	data    []byte
	path    string
	isPatch bool // of the target, which exists
}

// First returns the first byte of the value, which determines its type.
func (v Value) First() byte { return bytes.TrimLeft(v.data, space)[0] }

// Raw returns the bytes of the value, which the caller must not change.
func (v Value) Raw() []byte { return v.data }

// Report reports a problem of the value. The code can be empty.
func (v Value) Report(code, message string) {
	v.decoder.Problems.Report(v.path, code, message)
}

// number passes a number literal to set, which returns a message to report or
// "". A value that is not a number is reported.
func (v Value) number(set func(literal string) (problem string)) {
	if !isNumberStart(v.First()) {
		v.Report(WrongType, "must be a number")
		return
	}
	if problem := set(string(v.data)); problem != "" {
		v.Report(OutOfRange, problem)
	}
}

// Text returns the text of a string, and why it is invalid or "". It reports nothing.
func (v Value) Text() (text, problem string) {
	if v.First() != '"' {
		return "", "must be a string"
	}
	return unquote(v.data)
}

// Object decodes an object into the struct that into points to. A value that is
// not an object is reported.
func (v Value) Object(into any) { v.object(reflect.ValueOf(into).Elem()) }

// Member returns a member of the document at the top.
func (d *Decoder) Member(name string, data []byte) Value {
	return Value{decoder: d, data: data, path: name}
}

const maxFreeDepth = 32

// Free validates a value of any shape: its depth, duplicate names, every text, and that no number
// is too large for a 64-bit float. The function refuse returns why a text or a name is invalid,
// or "". Free reports whether it added no problem.
func (v Value) Free(refuse func(text string) (problem string)) (isValid bool) {
	before := len(v.decoder.Problems.list)
	v.free(v, 1, refuse)
	return len(v.decoder.Problems.list) == before
}

// free validates a value at a level of the value at the top.
func (v Value) free(top Value, level int, refuse func(string) string) {
	first := v.First()
	if level > maxFreeDepth && (first == '[' || first == '{') {
		top.Report(OutOfRange, fmt.Sprintf("must not nest deeper than %d levels", maxFreeDepth))
		return
	}
	switch first {
	case '"':
		text, problem := unquote(v.data)
		v.reportMember("", cmp.Or(problem, refuse(text)))
	case '[':
		i := 0
		for data := range elements(v.data) {
			v.element(i, data).free(top, level+1, refuse)
			i++
		}
	case '{':
		given := make(map[string]bool)
		c := cursor{data: v.data}
		c.accept('{')
		for !c.accept('}') {
			name, problem := unquote(c.next())
			c.accept(':')
			member := v.member(name, c.next())
			member.reportMember("", problem)
			if problem == "" {
				v.reportMember("", refuse(name)) // a path with the name would show it
			}
			if given[name] {
				member.reportMember(Duplicate, "must not be given more than once")
			}
			given[name] = true
			member.free(top, level+1, refuse)
			c.accept(',')
		}
	default:
		_, problem := float(string(v.data))
		if problem != "" || !hasSmallExponent(string(v.data)) {
			v.reportMember(OutOfRange, floatMessage)
		}
	}
}

// Join returns the path of a member of the value at a path. Either may be empty.
func Join(path, member string) string {
	if path == "" || member == "" {
		return path + member
	}
	return path + "." + member
}

type fieldShape struct {
	name     string
	index    int
	required bool
	wire     string // of the tag: nonempty, initial, readonly
}

// isWritable reports whether a document may have the field.
func (f fieldShape) isWritable(inPatch bool) bool {
	return !strings.Contains(f.wire, "readonly") && !(inPatch && strings.Contains(f.wire, "initial"))
}

// shapes caches the fields of struct types.
var shapes sync.Map // of []fieldShape by reflect.Type

func shapeOf(structType reflect.Type) []fieldShape {
	if fields, ok := shapes.Load(structType); ok {
		return fields.([]fieldShape)
	}
	var fields []fieldShape
	for i := range structType.NumField() {
		field := structType.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		wire := field.Tag.Get("wire")
		isRequired := !strings.Contains(wire, "optional") && field.Type.Kind() != reflect.Pointer && field.Type.Kind() != reflect.Slice
		fields = append(fields, fieldShape{name, i, isRequired, wire})
	}
	shapes.Store(structType, fields)
	return fields
}

func (v Value) object(target reflect.Value) {
	if !v.expect('{', "must be an object") {
		return
	}
	fields := shapeOf(target.Type())
	seen := make([]bool, len(fields))
	for name, data := range InOrder(v.data) {
		position := slices.IndexFunc(fields, func(field fieldShape) bool { return field.name == name })
		if position < 0 {
			v.member(name, data).reportUnknown(name, fields)
			continue
		}
		field, member := fields[position], v.member(name, data)
		switch {
		case !field.isWritable(v.isPatch) && v.isPatch:
			member.Report(Immutable, "cannot be changed")
		case !field.isWritable(v.isPatch):
			member.reportMember(UnknownField, "is not a known field")
		case seen[position]:
			member.Report(Duplicate, "must not be given more than once")
		default:
			seen[position] = true
			member.field(target.Field(field.index), field)
		}
	}
	for position, field := range fields {
		if field.required && field.isWritable(false) && !seen[position] && !v.isPatch {
			v.member(field.name, nil).Report(Required, "is required")
		}
	}
}

// maxPath is the length of the path of a nested member from which on … replaces its name:
// otherwise the time to build the paths of the members of an object would grow with the product
// of their number and the length.
const maxPath = 256

func (v Value) member(name string, data []byte) Value {
	if v.path != "" && len(v.path)+len(name) > maxPath {
		name = "…"
	}
	return Value{v.decoder, data, Join(v.path, name), v.isPatch}
}

func (v Value) element(index int, data []byte) Value {
	return Value{v.decoder, data, v.path + "[" + strconv.Itoa(index) + "]", false}
}

// reportMember reports a problem, if any, of a member whose name is chosen by the sender.
func (v Value) reportMember(code, problem string) {
	if problem != "" {
		v.decoder.Problems.ReportUnknown(v.path, code, problem)
	}
}

func (v Value) reportUnknown(name string, fields []fieldShape) {
	message := "is not a known field"
	if name == "" {
		message = "must not have a member with an empty name"
	}
	for _, field := range fields {
		if field.isWritable(v.isPatch) && strings.EqualFold(field.name, name) {
			message = fmt.Sprintf("is not a known field, did you mean %q?", field.name)
		}
	}
	v.reportMember(UnknownField, message)
}

// field decodes the value of a struct field. Null means omitted.
func (v Value) field(target reflect.Value, field fieldShape) {
	if v.First() == 'n' {
		if field.required {
			v.Report(Required, "is required and must not be null")
		}
		target.SetZero()
		return
	}
	v.decode(target)
	if strings.Contains(field.wire, "nonempty") && v.First() == '"' && target.IsZero() {
		v.Report(Required, "must not be empty")
	}
}

func (v Value) decode(target reflect.Value) {
	if target.Kind() == reflect.Pointer {
		value := reflect.New(target.Type().Elem())
		if v.isPatch = v.isPatch && !target.IsNil(); v.isPatch {
			value.Elem().Set(target.Elem()) // other relayers may refer to the old one
		}
		target.Set(value)
		target = value.Elem()
	}
	if v.decoder.Hook != nil && v.decoder.Hook(v, target.Addr().Interface()) {
		return
	}
	if object, isFree := target.Addr().Interface().(*json.RawMessage); isFree {
		v.freeObject(object)
		return
	}
	switch target.Kind() {
	case reflect.String:
		v.text(target)
	case reflect.Bool:
		v.boolean(target)
	case reflect.Slice:
		v.list(target)
	case reflect.Struct:
		v.object(target)
	case reflect.Map:
		v.texts(target)
	case reflect.Float64:
		v.number(func(literal string) string { return setFloat(target, literal) })
	default:
		v.number(func(literal string) string { return setInteger(target, literal) })
	}
}

func (v Value) expect(first byte, message string) bool {
	if v.First() == first {
		return true
	}
	v.Report(WrongType, message)
	return false
}

// freeObject merges an object of any shape into the target, as a merge patch.
func (v Value) freeObject(target *json.RawMessage) {
	if v.expect('{', "must be a JSON object") && v.Free(func(string) string { return "" }) {
		*target = MergePatch(*target, v.data)
	}
}

// texts decodes an object into a map of texts. In a merge patch, null removes a member.
func (v Value) texts(target reflect.Value) {
	if !v.expect('{', "must be an object") {
		return
	}
	given, texts := make(map[string]bool), reflect.MakeMap(target.Type())
	for name, text := range target.Seq2() { // those that a merge patch changes
		texts.SetMapIndex(name, text)
	}
	for name, data := range InOrder(v.data) {
		key, member := reflect.ValueOf(name), v.member(name, data)
		texts.SetMapIndex(key, reflect.Value{}) // no other check reports an invalid member again
		switch text, problem := member.Text(); {
		case given[name]:
			member.reportMember(Duplicate, "must not be given more than once")
		case v.isPatch && member.First() == 'n':
		case member.First() != '"':
			member.reportMember(WrongType, problem)
		case problem != "":
			member.reportMember("", problem)
		default:
			texts.SetMapIndex(key, reflect.ValueOf(text).Convert(target.Type().Elem()))
		}
		given[name] = true
	}
	target.Set(texts)
}

func (v Value) text(target reflect.Value) {
	if !v.expect('"', "must be a string") {
		return
	}
	text, problem := unquote(v.data)
	if problem != "" {
		v.Report("", problem)
	}
	target.SetString(text)
}

func (v Value) boolean(target reflect.Value) {
	switch literal := string(v.data); literal {
	case "true", "false":
		target.SetBool(literal == "true")
	default:
		v.Report(WrongType, "must be true or false")
	}
}

// MaxElements is the maximum length of a list, which bounds the work for a document that is
// refused. A caller checks it: a longer list is decoded with one element more.
const MaxElements = 10_000

func (v Value) list(target reflect.Value) {
	if !v.expect('[', "must be an array") {
		return
	}
	list := reflect.MakeSlice(target.Type(), 0, 0)
	element := reflect.New(target.Type().Elem()).Elem()
	for data := range elements(v.data) {
		if v.decoder.Problems.Full() || list.Len() > MaxElements {
			break
		}
		element.SetZero()
		v.element(list.Len(), data).decode(element)
		list = reflect.Append(list, element)
	}
	target.Set(list)
}

func setFloat(target reflect.Value, literal string) (problem string) {
	number, problem := float(literal)
	if problem == "" {
		target.SetFloat(number + 0) // encodes -0 as 0
	}
	return problem
}

// setInteger stores a whole number of 0 or more in a field of any integer type.
func setInteger(target reflect.Value, literal string) (problem string) {
	bits := target.Type().Bits()
	if target.CanInt() {
		value, problem := unsigned(literal, 1<<(bits-1)-1)
		target.SetInt(int64(value))
		return problem
	}
	value, problem := unsigned(literal, 1<<bits-1)
	target.SetUint(value)
	return problem
}
