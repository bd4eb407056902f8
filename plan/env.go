package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces the references in the JSON of the relayer at path, and returns the
// names of the variables. It adds a problem for a variable that is not set.
func (c *Config) expand(data []byte, path string, found *wire.Problems) (expanded []byte, names []string) {
	value := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(match string) string {
			name := reference.FindStringSubmatch(match)[1]
			names = append(names, name)
			if c.lookup == nil {
				return match
			}
			value, ok := c.lookup(name)
			switch {
			case !ok:
				found.Add(path, fmt.Sprintf("refers to the environment variable %s, which is not set", name))
			case !utf8.ValidString(value):
				found.Add(path, fmt.Sprintf("refers to the environment variable %s, whose value is not UTF-8", name))
			default:
				return value
			}
			return match
		})
	}
	return replaceTexts(data, value), names
}

// replaceTexts returns valid JSON with replace applied to its strings, except to the
// names of members.
func replaceTexts(data []byte, replace func(string) string) []byte {
	var out []byte
	for {
		start := bytes.IndexByte(data, '"')
		if start < 0 {
			return append(out, data...)
		}
		end := start + strictjson.StringLength(data[start:])
		out = append(out, data[:start]...)
		out = append(out, replaceText(data[start:end], isName(data[end:]), replace)...)
		data = data[end:]
	}
}

// isName reports whether the string literal before rest is the name of a member.
func isName(rest []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
}

// replaceText returns a literal without a replacement byte by byte, because decoding
// would hide problems of its text.
func replaceText(literal []byte, isName bool, replace func(string) string) []byte {
	var text string
	if isName || json.Unmarshal(literal, &text) != nil {
		return literal
	}
	replaced := replace(text)
	if replaced == text {
		return literal
	}
	encoded, err := strictjson.Encode(replaced)
	if err != nil {
		return literal
	}
	return encoded
}
