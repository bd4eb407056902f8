package strictjson

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Decoder binds JSON to Go values and notes every problem under its path.
type Decoder struct {
	found  Reporter
	hooks  map[reflect.Type]Hook
	shapes map[reflect.Type][]fieldShape

	// IsPatch lets required fields be left out, but for those of a list's
	// elements: a patch replaces lists whole.
	IsPatch bool
	lists   int // how many lists the value being read is in

	// IsMerged passes over unknown members, which the patch that brought them in
	// has been told of.
	IsMerged bool
}

func NewDecoder(found Reporter, hooks map[reflect.Type]Hook) *Decoder {
	return &Decoder{found: found, hooks: hooks, shapes: make(map[reflect.Type][]fieldShape)}
}

// Decode reads an object that checkJSON has passed into a struct.
func (d *Decoder) Decode(data []byte, into any) {
	d.Object(&Cursor{Data: data}, into, nil)
}

// Reporter collects the problems that are found.
type Reporter interface {
	Add(path, message string)
	AddUnknown(path, message string)
	Full() bool
}

// Hook reads the values of one type.
type Hook func(d *Decoder, cursor *Cursor, target any, at *Path)

// Object reads an object into the struct that into points to.
func (d *Decoder) Object(cursor *Cursor, into any, at *Path) {
	d.object(cursor, reflect.ValueOf(into).Elem(), at)
}

// Path is where in a document a value stands. It becomes text only where
// there is something to complain about.
type Path struct {
	parent    *Path
	Name      string // of an object's member
	isElement bool   // of an array, at index
	index     int
}

func (p *Path) String() string {
	switch {
	case p == nil:
		return ""
	case p.isElement:
		return p.parent.String() + "[" + strconv.Itoa(p.index) + "]"
	case p.parent == nil:
		return p.Name
	default:
		return p.parent.String() + "." + p.Name
	}
}

// fieldShape is what the decoder needs to know of one struct field.
type fieldShape struct {
	name     string
	index    int
	required bool
	nonempty bool // given as a string, it must not be ""
}

// shape returns the fields of a struct type. A field is required unless it is a
// pointer or a list, or its wire tag says that it is optional.
func (d *Decoder) shape(structType reflect.Type) []fieldShape {
	if fields, ok := d.shapes[structType]; ok {
		return fields
	}
	var fields []fieldShape
	for i := range structType.NumField() {
		field := structType.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		wire := field.Tag.Get("wire")
		fields = append(fields, fieldShape{
			name:     name,
			index:    i,
			required: !strings.Contains(wire, "optional") && field.Type.Kind() != reflect.Pointer && field.Type.Kind() != reflect.Slice,
			nonempty: strings.Contains(wire, "nonempty"),
		})
	}
	d.shapes[structType] = fields
	return fields
}

// object reads the object that is next into a struct.
func (d *Decoder) object(cursor *Cursor, target reflect.Value, at *Path) {
	fields := d.shape(target.Type())
	seen := make([]bool, len(fields))
	cursor.Members(func(name string) {
		path := &Path{parent: at, Name: name}
		position := fieldPosition(fields, name)
		if position < 0 {
			d.unknown(path, fields)
			cursor.Raw()
			return
		}
		if seen[position] {
			d.found.Add(path.String(), "must not be given more than once")
			cursor.Raw()
			return
		}
		seen[position] = true
		d.member(cursor, target.Field(fields[position].index), fields[position], path)
	})
	mayLeaveOut := d.IsPatch && d.lists == 0
	for position, field := range fields {
		if field.required && !seen[position] && !mayLeaveOut {
			d.found.Add((&Path{parent: at, Name: field.name}).String(), "is required")
		}
	}
}

func fieldPosition(fields []fieldShape, name string) int {
	for position, field := range fields {
		if field.name == name {
			return position
		}
	}
	return -1
}

// unknown notes a member that none of the fields is named for.
func (d *Decoder) unknown(at *Path, fields []fieldShape) {
	if d.IsMerged {
		return
	}
	if at.Name == "" {
		d.found.AddUnknown(at.parent.String(), "must not have a member with an empty name")
		return
	}
	message := "is not a known field"
	for _, field := range fields {
		if strings.EqualFold(field.name, at.Name) {
			message = fmt.Sprintf("is not a known field, did you mean %q?", field.name)
		}
	}
	d.found.AddUnknown(at.String(), message)
}

// member reads the value of one field.
func (d *Decoder) member(cursor *Cursor, target reflect.Value, field fieldShape, at *Path) {
	if cursor.Peek() == 'n' {
		cursor.Raw()
		if field.required {
			d.found.Add(at.String(), "is required and must not be null")
		}
		return
	}
	d.value(cursor, target, at)
	if field.nonempty && target.IsZero() {
		d.found.Add(at.String(), "must not be empty")
	}
}

// value reads the value that is next into target.
func (d *Decoder) value(cursor *Cursor, target reflect.Value, at *Path) {
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	if hook, ok := d.hooks[target.Type()]; ok {
		hook(d, cursor, target.Addr().Interface(), at)
		return
	}
	switch target.Kind() {
	case reflect.String:
		d.text(cursor, target, at)
	case reflect.Bool:
		d.boolean(cursor, target, at)
	case reflect.Slice:
		d.list(cursor, target, at)
	case reflect.Struct:
		if d.expect(cursor, '{', at, "must be an object") {
			d.object(cursor, target, at)
		}
	case reflect.Float64:
		d.Number(cursor, at, func(literal string) string { return setFloat(target, literal) })
	default:
		d.Number(cursor, at, func(literal string) string { return setInteger(target, literal) })
	}
}

// expect tells whether the next value begins with first; where it does not, it
// is skipped and noted.
func (d *Decoder) expect(cursor *Cursor, first byte, at *Path, message string) bool {
	if cursor.Peek() == first {
		return true
	}
	cursor.Raw()
	d.found.Add(at.String(), message)
	return false
}

func (d *Decoder) text(cursor *Cursor, target reflect.Value, at *Path) {
	if !d.expect(cursor, '"', at, "must be a string") {
		return
	}
	text, problem := Unquote(cursor.Raw())
	if problem != "" {
		d.found.Add(at.String(), problem)
		return
	}
	target.SetString(text)
}

func (d *Decoder) boolean(cursor *Cursor, target reflect.Value, at *Path) {
	switch literal := string(cursor.Raw()); literal {
	case "true", "false":
		target.SetBool(literal == "true")
	default:
		d.found.Add(at.String(), "must be true or false")
	}
}

func (d *Decoder) list(cursor *Cursor, target reflect.Value, at *Path) {
	if !d.expect(cursor, '[', at, "must be an array") {
		return
	}
	list := reflect.MakeSlice(target.Type(), 0, 0)
	path := &Path{parent: at, isElement: true}
	element := reflect.New(target.Type().Elem()).Elem()
	d.lists++
	defer func() { d.lists-- }()
	cursor.Elements(func(index int) {
		if d.found.Full() {
			cursor.Raw()
			return
		}
		path.index = index
		element.SetZero()
		d.value(cursor, element, path)
		list = reflect.Append(list, element)
	})
	target.Set(list)
}

func (d *Decoder) Number(cursor *Cursor, at *Path, set func(literal string) (problem string)) {
	if first := cursor.Peek(); first != '-' && (first < '0' || first > '9') {
		cursor.Raw()
		d.found.Add(at.String(), "must be a number")
		return
	}
	if problem := set(string(cursor.Raw())); problem != "" {
		d.found.Add(at.String(), problem)
	}
}

func setFloat(target reflect.Value, literal string) (problem string) {
	number, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return "must be a number that a 64-bit float can hold"
	}
	target.SetFloat(number + 0) // -0 is served as 0
	return ""
}

// setInteger stores a whole number in an integer field. No field takes a
// negative one.
func setInteger(target reflect.Value, literal string) (problem string) {
	number, whole := ParseWholeNumber(literal)
	if !whole {
		return NotWholeMessage
	}
	bits := target.Type().Bits()
	if target.CanInt() {
		value, problem := number.Uint64UpTo(1<<(bits-1) - 1)
		target.SetInt(int64(value))
		return problem
	}
	value, problem := number.Uint64UpTo(1<<bits - 1)
	target.SetUint(value)
	return problem
}
