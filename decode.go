package relayer

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// decodeCreateRequest reads a create request from strict JSON into req and adds
// every problem to found. It reports false where data is no JSON object at all, so
// that there is nothing to say of its fields.
//
// The rules are those of the wire contract: no duplicate and no unknown names
// at any depth, names matched exactly, null for an optional field meaning left
// out, numbers taken by their value.
func decodeCreateRequest(data []byte, req *CreateRequest, found *problems) bool {
	if problem := strictjson.Check(data); problem != "" {
		found.Add("", "the body "+problem)
		return false
	}
	d := newDecoder(found)
	d.document(data, req)
	req.Policies = d.decodePolicies(req.NetworkType)
	return true
}

// newPolicy returns an empty policy of the network type, or nil where there is
// no such type.
func newPolicy(networkType NetworkType) Policy {
	switch networkType {
	case EVM:
		return new(EVMPolicy)
	case Solana:
		return new(SolanaPolicy)
	case Stellar:
		return new(StellarPolicy)
	default:
		return nil
	}
}

// decoder binds JSON to Go values and notes every problem under its path.
type decoder struct {
	found  *problems
	shapes map[reflect.Type][]fieldShape

	// policies is the policy block as written, put off until the network type
	// is known: names of an object have no order.
	policies []byte

	// isPatch lets required fields be left out, but for those of a list's
	// elements: a patch replaces lists whole.
	isPatch bool
	lists   int // how many lists the value being read is in

	// isMerged passes over unknown members, which the patch that brought them in
	// has been told of.
	isMerged bool
}

func newDecoder(found *problems) *decoder {
	return &decoder{found: found, shapes: make(map[reflect.Type][]fieldShape)}
}

// document reads an object that checkJSON has passed into a struct.
func (d *decoder) document(data []byte, into any) {
	d.object(&strictjson.Cursor{Data: data}, reflect.ValueOf(into).Elem(), nil)
}

// decodePolicies reads the policy block put off. Without a network type nothing
// can be said of it.
func (d *decoder) decodePolicies(networkType NetworkType) Policy {
	if d.policies == nil {
		return nil
	}
	at := &jsonPath{name: "policies"}
	cursor := &strictjson.Cursor{Data: d.policies}
	if cursor.Peek() != '{' {
		d.found.Add(at.String(), "must be an object")
		return nil
	}
	policy := newPolicy(networkType)
	if policy == nil {
		return nil
	}
	d.object(cursor, reflect.ValueOf(policy).Elem(), at)
	return policy
}

// jsonPath is where in a document a value stands. It becomes text only where
// there is something to complain about.
type jsonPath struct {
	parent    *jsonPath
	name      string // of an object's member
	isElement bool   // of an array, at index
	index     int
}

func (p *jsonPath) String() string {
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

// fieldShape is what the decoder needs to know of one struct field.
type fieldShape struct {
	name     string
	index    int
	required bool
	nonempty bool // given as a string, it must not be ""
}

// shape returns the fields of a struct type. A field is required unless it is a
// pointer or a list, or its wire tag says that it is optional.
func (d *decoder) shape(structType reflect.Type) []fieldShape {
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
func (d *decoder) object(cursor *strictjson.Cursor, target reflect.Value, at *jsonPath) {
	fields := d.shape(target.Type())
	seen := make([]bool, len(fields))
	cursor.Members(func(name string) {
		path := &jsonPath{parent: at, name: name}
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
	mayLeaveOut := d.isPatch && d.lists == 0
	for position, field := range fields {
		if field.required && !seen[position] && !mayLeaveOut {
			d.found.Add((&jsonPath{parent: at, name: field.name}).String(), "is required")
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
func (d *decoder) unknown(at *jsonPath, fields []fieldShape) {
	if d.isMerged {
		return
	}
	if at.name == "" {
		d.found.AddUnknown(at.parent.String(), "must not have a member with an empty name")
		return
	}
	message := "is not a known field"
	for _, field := range fields {
		if strings.EqualFold(field.name, at.name) {
			message = fmt.Sprintf("is not a known field, did you mean %q?", field.name)
		}
	}
	d.found.AddUnknown(at.String(), message)
}

// member reads the value of one field.
func (d *decoder) member(cursor *strictjson.Cursor, target reflect.Value, field fieldShape, at *jsonPath) {
	if cursor.Peek() == 'n' {
		cursor.Raw()
		if field.required {
			d.found.Add(at.String(), "is required and must not be null")
		}
		return
	}
	if target.Kind() == reflect.Interface {
		d.policies = cursor.Raw()
		return
	}
	d.value(cursor, target, at)
	if field.nonempty && target.IsZero() {
		d.found.Add(at.String(), "must not be empty")
	}
}

// unionDecoder is a type whose JSON form is one of several.
type unionDecoder interface {
	decodeUnion(d *decoder, cursor *strictjson.Cursor, at *jsonPath)
}

// value reads the value that is next into target.
func (d *decoder) value(cursor *strictjson.Cursor, target reflect.Value, at *jsonPath) {
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	switch into := target.Addr().Interface().(type) {
	case *Amount:
		d.number(cursor, at, func(literal string) (problem string) {
			*into, problem = amountFromLiteral(literal)
			return problem
		})
		return
	case unionDecoder:
		into.decodeUnion(d, cursor, at)
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
		d.number(cursor, at, func(literal string) string { return setFloat(target, literal) })
	default:
		d.number(cursor, at, func(literal string) string { return setInteger(target, literal) })
	}
}

// expect tells whether the next value begins with first; where it does not, it
// is skipped and noted.
func (d *decoder) expect(cursor *strictjson.Cursor, first byte, at *jsonPath, message string) bool {
	if cursor.Peek() == first {
		return true
	}
	cursor.Raw()
	d.found.Add(at.String(), message)
	return false
}

func (d *decoder) text(cursor *strictjson.Cursor, target reflect.Value, at *jsonPath) {
	if !d.expect(cursor, '"', at, "must be a string") {
		return
	}
	text, problem := strictjson.Unquote(cursor.Raw())
	if problem != "" {
		d.found.Add(at.String(), problem)
		return
	}
	target.SetString(text)
}

func (d *decoder) boolean(cursor *strictjson.Cursor, target reflect.Value, at *jsonPath) {
	switch literal := string(cursor.Raw()); literal {
	case "true", "false":
		target.SetBool(literal == "true")
	default:
		d.found.Add(at.String(), "must be true or false")
	}
}

func (d *decoder) list(cursor *strictjson.Cursor, target reflect.Value, at *jsonPath) {
	if !d.expect(cursor, '[', at, "must be an array") {
		return
	}
	list := reflect.MakeSlice(target.Type(), 0, 0)
	path := &jsonPath{parent: at, isElement: true}
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

func (d *decoder) number(cursor *strictjson.Cursor, at *jsonPath, set func(literal string) (problem string)) {
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
	number, whole := strictjson.ParseWholeNumber(literal)
	if !whole {
		return strictjson.NotWholeMessage
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

func (k *StellarTokenKind) decodeUnion(d *decoder, cursor *strictjson.Cursor, at *jsonPath) {
	const message = `must be "native", {"classic":…} or {"contract":…}`
	switch cursor.Peek() {
	case '"':
		if text, _ := strictjson.Unquote(cursor.Raw()); text != nativeKind {
			d.found.Add(at.String(), message)
		}
	case '{':
		d.object(cursor, reflect.ValueOf(k).Elem(), at)
		if (k.Classic == nil) == (k.Contract == nil) {
			d.found.Add(at.String(), message)
		}
	default:
		cursor.Raw()
		d.found.Add(at.String(), message)
	}
}
