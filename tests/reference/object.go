package main

import (
	"bytes"
	"encoding/json"
	"slices"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// obj returns an object of alternating names and values.
func obj(pairs ...any) object {
	var o object
	for pair := range slices.Chunk(pairs, 2) {
		o = append(o, member{pair[0].(string), pair[1]})
	}
	return o
}

func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// with returns a copy in which the member has the value.
func (o object) with(name string, value any) object {
	copied := slices.Clone(o)
	for i := range copied {
		if copied[i].name == name {
			copied[i].value = value
			return copied
		}
	}
	return append(copied, member{name, value})
}

// merge returns a copy with the members of other added.
func (o object) merge(other object) object {
	for _, m := range other {
		o = o.with(m.name, m.value)
	}
	return o
}

// MarshalJSON writes the members in their order, and texts without HTML escapes.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := encoder.Encode(m.name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// UnmarshalJSON reads an object. Values that are objects are of this type too, and others are
// kept as they are written.
func (o *object) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		m := member{name.(string), raw}
		if raw[0] == '{' {
			var below object
			if err := below.UnmarshalJSON(raw); err != nil {
				return err
			}
			m.value = below
		}
		*o = append(*o, m)
	}
	return nil
}
