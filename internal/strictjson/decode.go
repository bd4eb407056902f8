package strictjson

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Reporter collects the problems that a [Decoder] finds.
type Reporter interface {
	// Add reports a problem of the field at path.
	Add(path, message string)

	// AddUnknown reports a member that is not a field. Its path contains a name
	// chosen by the sender, which may look like the path of a field.
	AddUnknown(path, message string)

	// Full reports whether further problems are dropped. The decoder then stops
	// reading lists.
	Full() bool
}

// Hook reads values of one Go type instead of the decoder. It gets a pointer to
// the target, which is zero.
type Hook func(v Value, target any)

// Decoder decodes checked JSON into structs and reports every problem with its
// path. A Decoder is not safe for concurrent use.
type Decoder struct {
	// Reporter receives the problems. Required.
	Reporter Reporter

	// Hooks read the values of the types that are its keys.
	Hooks map[reflect.Type]Hook

	// AllowMissing permits required fields to be missing, except in elements of
	// lists. It is for merge patches, which replace lists whole.
	AllowMissing bool

	// IgnoreUnknown skips members that are not fields, and the problems of the members of
	// a map.
	IgnoreUnknown bool
}

// Decode decodes data, an object accepted by [Check], into the struct that into
// points to. Decode may be called any number of times.
func (d *Decoder) Decode(data []byte, into any) {
	Value{decoder: d, data: data}.Object(into)
}

// Value is one value of a document.
type Value struct {
	decoder *Decoder
	data    []byte
	path    *path
}

// First returns the first byte of the value, which determines its type.
func (v Value) First() byte {
	c := cursor{data: v.data}
	c.skipSpace()
	return c.data[c.at]
}

// Raw returns the bytes of the value, which the caller must not change.
func (v Value) Raw() []byte { return v.data }

// Report reports a problem of the value.
func (v Value) Report(message string) { v.decoder.Reporter.Add(v.path.String(), message) }

// Number passes a number literal to set, which returns a message to report or
// "". A value that is not a number is reported.
func (v Value) Number(set func(literal string) (problem string)) {
	if !isNumberStart(v.First()) {
		v.Report("must be a number")
		return
	}
	if problem := set(string(v.data)); problem != "" {
		v.Report(problem)
	}
}

// Text returns the text of a string, or "" and a message. It reports nothing.
func (v Value) Text() (text, problem string) {
	if v.First() != '"' {
		return "", "must be a string"
	}
	return unquote(v.data)
}

// Object decodes an object into the struct that into points to. A value that is
// not an object is reported.
func (v Value) Object(into any) { v.object(reflect.ValueOf(into).Elem()) }

// path is the path of a value, formatted only if there is a problem to report.
type path struct {
	parent    *path
	name      string // of a member of an object
	isElement bool   // of an array, at index
	index     int
}

func (p *path) String() string {
	switch {
	case p == nil:
		return ""
	case p.isElement:
		return p.parent.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.parent == nil:
		return p.name
	default:
		return p.parent.String() + "." + p.name
	}
}

// Join returns the path of a member of the value at a path. Either may be empty.
func Join(path, member string) string {
	if path == "" || member == "" {
		return path + member
	}
	return path + "." + member
}

func (p *path) isInList() bool { return p != nil && (p.isElement || p.parent.isInList()) }

type fieldShape struct {
	name     string
	index    int
	required bool
	nonempty bool
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
		fields = append(fields, fieldShape{
			name:     name,
			index:    i,
			required: !strings.Contains(wire, "optional") && field.Type.Kind() != reflect.Pointer && field.Type.Kind() != reflect.Slice,
			nonempty: strings.Contains(wire, "nonempty"),
		})
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
		member := Value{v.decoder, data, &path{parent: v.path, name: name}}
		position := slices.IndexFunc(fields, func(field fieldShape) bool { return field.name == name })
		switch {
		case position < 0:
			member.reportUnknown(fields)
		case seen[position]:
			member.Report("must not be given more than once")
		default:
			seen[position] = true
			member.field(target.Field(fields[position].index), fields[position])
		}
	}
	if v.decoder.AllowMissing && !v.path.isInList() {
		return
	}
	for position, field := range fields {
		if field.required && !seen[position] {
			Value{v.decoder, nil, &path{parent: v.path, name: field.name}}.Report("is required")
		}
	}
}

// reportMember reports a problem of a member whose name is chosen by the sender.
func (v Value) reportMember(message string) {
	if v.decoder.IgnoreUnknown {
		return
	}
	path := v.path
	if path.name == "" {
		path = path.parent
	}
	v.decoder.Reporter.AddUnknown(path.String(), message)
}

func (v Value) reportUnknown(fields []fieldShape) {
	message := "is not a known field"
	if v.path.name == "" {
		message = "must not have a member with an empty name"
	}
	for _, field := range fields {
		if strings.EqualFold(field.name, v.path.name) {
			message = fmt.Sprintf("is not a known field, did you mean %q?", field.name)
		}
	}
	v.reportMember(message)
}

// field decodes the value of a struct field. Null means omitted.
func (v Value) field(target reflect.Value, field fieldShape) {
	if v.First() == 'n' {
		if field.required {
			v.Report("is required and must not be null")
		}
		return
	}
	v.decode(target)
	if field.nonempty && v.First() == '"' && target.IsZero() {
		v.Report("must not be empty")
	}
}

func (v Value) decode(target reflect.Value) {
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	if hook, ok := v.decoder.Hooks[target.Type()]; ok {
		hook(v, target.Addr().Interface())
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
		v.Number(func(literal string) string { return setFloat(target, literal) })
	default:
		v.Number(func(literal string) string { return setInteger(target, literal) })
	}
}

func (v Value) expect(first byte, message string) bool {
	if v.First() == first {
		return true
	}
	v.Report(message)
	return false
}

// texts decodes an object into a map[string]string. In a merge patch, null removes a member.
func (v Value) texts(target reflect.Value) {
	if !v.expect('{', "must be an object") {
		return
	}
	texts := make(map[string]string)
	for name, data := range InOrder(v.data) {
		member := Value{v.decoder, data, &path{parent: v.path, name: name}}
		text, problem := member.Text()
		if v.decoder.AllowMissing && member.First() == 'n' {
			problem = ""
		}
		if _, isDuplicate := texts[name]; isDuplicate {
			problem = "must not be given more than once"
		}
		if problem != "" {
			member.reportMember(problem)
			text = "" // so that no other check reports it again
		}
		texts[name] = text
	}
	target.Set(reflect.ValueOf(texts))
}

func (v Value) text(target reflect.Value) {
	text, problem := v.Text()
	if problem != "" {
		v.Report(problem)
		return
	}
	target.SetString(text)
}

func (v Value) boolean(target reflect.Value) {
	switch literal := string(v.data); literal {
	case "true", "false":
		target.SetBool(literal == "true")
	default:
		v.Report("must be true or false")
	}
}

func (v Value) list(target reflect.Value) {
	if !v.expect('[', "must be an array") {
		return
	}
	list := reflect.MakeSlice(target.Type(), 0, 0)
	element := reflect.New(target.Type().Elem()).Elem()
	for data := range elements(v.data) {
		if v.decoder.Reporter.Full() {
			break
		}
		element.SetZero()
		Value{v.decoder, data, &path{parent: v.path, isElement: true, index: list.Len()}}.decode(element)
		list = reflect.Append(list, element)
	}
	target.Set(list)
}

func setFloat(target reflect.Value, literal string) (problem string) {
	number, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return "must be a number that a 64-bit float can hold"
	}
	target.SetFloat(number + 0) // encodes -0 as 0
	return ""
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
