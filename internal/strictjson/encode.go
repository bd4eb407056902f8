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

// NotUTF8 returns the paths of the texts in a result of [Encode] that were not UTF-8. The
// encoder has replaced their bytes by an escape, which it writes for nothing else.
func NotUTF8(encoded []byte) []string { return appendNotUTF8(nil, "", encoded) }

func appendNotUTF8(paths []string, path string, value []byte) []string {
	switch value[0] {
	case '"':
		if hasReplacement(value) {
			paths = append(paths, path)
		}
	case '{':
		for name, member := range InOrder(value) {
			paths = appendNotUTF8(paths, Join(path, name), member)
		}
	case '[':
		i := 0
		for element := range elements(value) {
			paths = appendNotUTF8(paths, fmt.Sprintf("%s[%d]", path, i), element)
			i++
		}
	}
	return paths
}

func hasReplacement(literal []byte) bool {
	const escape = `\ufffd`
	for i := 0; i < len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(literal[i:], []byte(escape)) {
			return true
		}
		i++ // the escaped character
	}
	return false
}
