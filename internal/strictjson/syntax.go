package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays of a request may nest.
const maxDepth = 32

// Check reports why data is not one JSON object that can be read without
// guessing, or "". What encoding/json would let pass is refused here: bad
// UTF-8, and any depth. Duplicate and misspelled names are for the decoder,
// which knows where they stand.
func Check(data []byte) (problem string) {
	if !utf8.Valid(data) {
		return "must be UTF-8"
	}
	if nesting(data) > maxDepth {
		return fmt.Sprintf("must not nest deeper than %d levels", maxDepth)
	}
	if problem := syntaxProblem(data); problem != "" {
		return problem
	}
	if bytes.TrimLeft(data, space)[0] != '{' {
		return "must be a JSON object"
	}
	return ""
}

const space = " \t\r\n"

func syntaxProblem(data []byte) string {
	if len(bytes.Trim(data, space)) == 0 {
		return "must be a JSON object, not empty"
	}
	if json.Valid(data) {
		return ""
	}
	// A decoder, where Unmarshal would not tell data after the value from data
	// inside it.
	decoder := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if err := decoder.Decode(&first); err == nil {
		return "must be one JSON object with nothing after it"
	}
	return fmt.Sprintf("must be valid JSON: the error is at or before byte %d", syntaxErrorOffset(data))
}

func syntaxErrorOffset(data []byte) int64 {
	var value json.RawMessage
	if err, ok := json.Unmarshal(data, &value).(*json.SyntaxError); ok {
		return err.Offset
	}
	return int64(len(data))
}

// nesting is the deepest nesting in data, valid JSON or not.
func nesting(data []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringLength(data[i:]) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// stringLength is the length of the string literal that data begins with,
// quotes included.
func stringLength(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// IsNumber tells whether text is a JSON number and nothing else.
func IsNumber(text string) bool {
	if text == "" || strings.IndexByte("-0123456789", text[0]) < 0 {
		return false
	}
	return strings.TrimRight(text, space) == text && json.Valid([]byte(text))
}

// Cursor walks over data that Check has passed, so that it need not
// look for errors of syntax.
type Cursor struct {
	Data []byte
	at   int
}

// Peek returns the first byte of the next value or delimiter.
func (c *Cursor) Peek() byte {
	for strings.IndexByte(space, c.Data[c.at]) >= 0 {
		c.at++
	}
	return c.Data[c.at]
}

// accept moves past delimiter where it is next.
func (c *Cursor) accept(delimiter byte) bool {
	if c.Peek() != delimiter {
		return false
	}
	c.at++
	return true
}

// Raw moves past the next value and returns it as it is written.
func (c *Cursor) Raw() []byte {
	first := c.Peek()
	start := c.at
	switch first {
	case '"':
		c.at += stringLength(c.Data[c.at:])
	case '{', '[':
		c.skipComposite()
	default:
		for c.at < len(c.Data) && strings.IndexByte(",]}"+space, c.Data[c.at]) < 0 {
			c.at++
		}
	}
	return c.Data[start:c.at]
}

func (c *Cursor) skipComposite() {
	depth := 0
	for {
		switch c.Data[c.at] {
		case '"':
			c.at += stringLength(c.Data[c.at:])
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.at++
		if depth == 0 {
			return
		}
	}
}

// Members calls visit for every member of the object that is next. Visit must
// move past the member's value.
func (c *Cursor) Members(visit func(name string)) {
	c.accept('{')
	for !c.accept('}') {
		name, _ := Unquote(c.Raw())
		c.accept(':')
		visit(name)
		c.accept(',')
	}
}

// Elements calls visit for every element of the array that is next. Visit must
// move past the element.
func (c *Cursor) Elements(visit func(index int)) {
	c.accept('[')
	for index := 0; !c.accept(']'); index++ {
		visit(index)
		c.accept(',')
	}
}

// Unquote returns the text of a string literal, and what is wrong with it
// as text, or "".
func Unquote(literal []byte) (text, problem string) {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1]), ""
	}
	if err := json.Unmarshal(literal, &text); err != nil || hasLoneSurrogate(literal) {
		return text, "must not contain half a surrogate pair"
	}
	if strings.IndexByte(text, 0) >= 0 {
		return text, "must not contain NUL"
	}
	return text, ""
}

// hasLoneSurrogate tells whether a string literal escapes a UTF-16 surrogate
// that is not part of a pair. It stands for no character, and encoding/json
// would store another in its place.
func hasLoneSurrogate(literal []byte) bool {
	high := false // the escape just read is the first half of a pair
	for i := 1; i < len(literal)-1; i++ {
		isEscape := literal[i] == '\\'
		unit := byte(0)
		if isEscape && literal[i+1] == 'u' {
			unit = surrogateHalf(literal[i+2 : i+6])
			i += 5
		} else if isEscape {
			i++
		}
		if high != (unit == lowSurrogate) {
			return true
		}
		high = unit == highSurrogate
	}
	return high
}

const (
	highSurrogate byte = 'h'
	lowSurrogate  byte = 'l'
)

// surrogateHalf says which half of a pair four hex digits are, or 0.
func surrogateHalf(hex []byte) byte {
	if hex[0] != 'd' && hex[0] != 'D' {
		return 0
	}
	switch hex[1] {
	case '8', '9', 'a', 'b', 'A', 'B':
		return highSurrogate
	case 'c', 'd', 'e', 'f', 'C', 'D', 'E', 'F':
		return lowSurrogate
	}
	return 0
}
