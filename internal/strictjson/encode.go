package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Encode encodes value as it is served: without the escapes for HTML and
// without a final newline.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
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
