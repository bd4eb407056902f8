package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode encodes value as it is served: without the escapes for HTML and
// without a final newline. The number -0 becomes 0.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return withoutNegativeZero(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
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

// withoutNegativeZero replaces the number -0 of Go by 0, as which the decoder reads it:
// the two are equal, and must have the same encoding.
func withoutNegativeZero(encoded []byte) []byte {
	if !bytes.Contains(encoded, []byte("-0")) {
		return encoded
	}
	var out []byte
	for at := 0; at < len(encoded); {
		length := 1
		switch {
		case encoded[at] == '"':
			length = stringLength(encoded[at:])
		case isNegativeZero(encoded[at:]) && (at == 0 || !isNumberByte(encoded[at-1])):
			at++
		}
		out = append(out, encoded[at:at+length]...)
		at += length
	}
	return out
}

func isNegativeZero(data []byte) bool {
	return bytes.HasPrefix(data, []byte("-0")) && (len(data) == 2 || !isNumberByte(data[2]))
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || bytes.IndexByte([]byte("+-.eE"), c) >= 0
}
