package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
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
