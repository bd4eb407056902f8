package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces the references in the JSON of the relayer at path, and returns the
// names of the variables. It adds a problem for a text with a variable that is not set.
func (c *Config) expand(data []byte, path string, found *wire.Problems) (expanded []byte, names []string) {
	value := func(at places, text string) string {
		problem := ""
		replaced := reference.ReplaceAllStringFunc(text, func(match string) string {
			name := reference.FindStringSubmatch(match)[1]
			names = append(names, name)
			if c.lookup == nil {
				return match
			}
			value, ok := c.lookup(name)
			switch {
			case !ok:
				problem = cmp.Or(problem, fmt.Sprintf("refers to the environment variable %s, which is not set", name))
			case !utf8.ValidString(value):
				problem = cmp.Or(problem, fmt.Sprintf("refers to the environment variable %s, whose value is not UTF-8", name))
			default:
				return value
			}
			return match
		})
		if problem != "" {
			found.Add(at.below(path), problem)
		}
		return replaced
	}
	return replaceTexts(data, value), names
}

// replaceTexts returns valid JSON with replace applied to its strings, except to the
// names of members. It passes the places of a string, which are valid during the call.
func replaceTexts(data []byte, replace func(at places, text string) string) []byte {
	var out []byte
	var at places
	for {
		start := bytes.IndexByte(data, '"')
		if start < 0 {
			return append(out, data...)
		}
		at.read(data[:start])
		end := start + strictjson.StringLength(data[start:])
		out = append(out, data[:start]...)
		literal := data[start:end]
		if isName(data[end:]) {
			_ = json.Unmarshal(literal, &at[len(at)-1].name)
		} else {
			literal = replaceText(literal, func(text string) string { return replace(at, text) })
		}
		out = append(out, literal...)
		data = data[end:]
	}
}

// places are the current members or elements of the values around a place, the outermost first.
type places []place

type place struct {
	name    string // of a member
	index   int    // of an element
	isArray bool
}

// read reads the JSON between two strings.
func (p *places) read(between []byte) {
	for _, c := range between {
		last := len(*p) - 1
		switch c {
		case '{', '[':
			*p = append(*p, place{isArray: c == '['})
		case '}', ']':
			*p = (*p)[:last]
		case ',':
			(*p)[last].index++
		}
	}
}

// below returns the path of the place in the JSON at a path.
func (p places) below(path string) string {
	for _, place := range p {
		if place.isArray {
			path = fmt.Sprintf("%s[%d]", path, place.index)
		} else {
			path = strictjson.Join(path, place.name)
		}
	}
	return path
}

// isName reports whether the string literal before rest is the name of a member.
func isName(rest []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
}

// replaceText returns a literal without a replacement byte by byte, because decoding
// would hide problems of its text.
func replaceText(literal []byte, replace func(string) string) []byte {
	var text string
	if json.Unmarshal(literal, &text) != nil {
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
