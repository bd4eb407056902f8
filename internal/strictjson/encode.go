package strictjson

import (
	"bytes"
	"encoding/json"
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
