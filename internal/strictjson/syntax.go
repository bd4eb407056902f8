package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// maxDepth is the deepest nesting of objects and arrays that Check accepts. It is the limit of
// encoding/json. The types of a document, and [Value.Free], have smaller ones.
const maxDepth = 10_000

const space = " \t\r\n"

// Check returns a message if data is not exactly one JSON object in UTF-8,
// nested at most 10,000 levels deep, and "" otherwise. It does not check names:
// a [Decoder] finds unknown and duplicate names, with their paths.
func Check(data []byte) (problem string) {
	if !utf8.Valid(data) {
		return NotUTF8Message
	}
	if depth(data) > maxDepth {
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

func syntaxProblem(data []byte) string {
	if len(bytes.Trim(data, space)) == 0 {
		return "must be a JSON object, not empty"
	}
	if json.Valid(data) {
		return ""
	}
	// Unlike Unmarshal, a Decoder distinguishes an error inside the first value
	// from data after it.
	decoder := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if err := decoder.Decode(&first); err == nil {
		return "must be one JSON object with nothing after it"
	}
	line, column := syntaxErrorPosition(data)
	return fmt.Sprintf("must be valid JSON: the error is at or before line %d, column %d", line, column)
}

// syntaxErrorPosition returns the position in lines and characters, from 1.
func syntaxErrorPosition(data []byte) (line, column int) {
	var value json.RawMessage
	if err, ok := json.Unmarshal(data, &value).(*json.SyntaxError); ok {
		data = data[:max(0, min(int(err.Offset)-1, len(data)))]
	}
	lineStart := bytes.LastIndexByte(data, '\n') + 1
	return 1 + bytes.Count(data, []byte("\n")), 1 + utf8.RuneCount(data[lineStart:])
}

// depth returns the deepest nesting in data, which need not be valid JSON.
func depth(data []byte) int {
	current, deepest := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += stringLength(data[i:]) - 1
		case '{', '[':
			current++
			deepest = max(deepest, current)
		case '}', ']':
			current--
		}
	}
	return deepest
}

// stringLength returns the length of the string literal at the start of data, quotes
// included. If the literal does not end, it returns the length of data.
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

// IsNumber reports whether text is a JSON number and nothing else.
func IsNumber(text string) bool {
	if text == "" || !isNumberStart(text[0]) {
		return false
	}
	return strings.TrimRight(text, space) == text && json.Valid([]byte(text))
}

func isNumberStart(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// NotUTF8Message is the message for a text that is not UTF-8.
const NotUTF8Message = "must be UTF-8"

// InOrder returns the members of an object of a checked document, in the order
// in which they are written.
func InOrder(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := cursor{data: object}
		c.accept('{')
		for !c.accept('}') {
			name := nameOf(c.next())
			c.accept(':')
			// The conversion is here so that it needs no memory if the caller keeps no name.
			if !yield(string(name), c.next()) {
				return
			}
			c.accept(',')
		}
	}
}

// Member is a member of an object. Name is its text, and Value its JSON.
type Member struct{ Name, Value []byte }

// MemberList is [InOrder] as a list, which needs no memory for names. It is nil for what is no
// object.
func MemberList(object []byte) []Member {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	members := make([]Member, 0, 16)
	c := cursor{data: object}
	c.accept('{')
	for !c.accept('}') {
		name := nameOf(c.next())
		c.accept(':')
		members = append(members, Member{name, c.next()})
		c.accept(',')
	}
	return members
}

// ValueOf returns the value of a member, or nil.
func ValueOf(members []Member, name []byte) []byte {
	for _, member := range members {
		if bytes.Equal(member.Name, name) {
			return member.Value
		}
	}
	return nil
}

// nameOf returns the text of the string literal of a name.
func nameOf(literal []byte) []byte {
	if bytes.IndexByte(literal, '\\') < 0 {
		return literal[1 : len(literal)-1]
	}
	name, _ := unquote(literal)
	return []byte(name)
}

// elements returns the elements of an array of a checked document.
func elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := cursor{data: array}
		c.accept('[')
		for !c.accept(']') {
			if !yield(c.next()) {
				return
			}
			c.accept(',')
		}
	}
}

// cursor reads a checked document, so that it needs no handling of syntax
// errors.
type cursor struct {
	data []byte
	at   int
}

func (c *cursor) skipSpace() {
	for strings.IndexByte(space, c.data[c.at]) >= 0 {
		c.at++
	}
}

// accept skips delimiter if it is next, and reports whether it was.
func (c *cursor) accept(delimiter byte) bool {
	c.skipSpace()
	if c.data[c.at] != delimiter {
		return false
	}
	c.at++
	return true
}

// next skips the next value and returns it as written.
func (c *cursor) next() []byte {
	c.skipSpace()
	start := c.at
	switch c.data[start] {
	case '"':
		c.at += stringLength(c.data[start:])
	case '{', '[':
		c.skipComposite()
	default:
		for c.at < len(c.data) && strings.IndexByte(",]}"+space, c.data[c.at]) < 0 {
			c.at++
		}
	}
	return c.data[start:c.at]
}

func (c *cursor) skipComposite() {
	for open := 0; ; {
		switch c.data[c.at] {
		case '"':
			c.at += stringLength(c.data[c.at:])
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		c.at++
		if open == 0 {
			return
		}
	}
}

// TextProblem returns a message if text cannot be stored unchanged, and ""
// otherwise.
func TextProblem(text string) string {
	if !utf8.ValidString(text) {
		return NotUTF8Message
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "must not contain NUL"
	}
	return ""
}

// unquote returns the text of a string literal and a message if that text
// cannot be stored.
func unquote(literal []byte) (text, problem string) {
	if bytes.IndexByte(literal, '\\') < 0 {
		return string(literal[1 : len(literal)-1]), ""
	}
	if err := json.Unmarshal(literal, &text); err != nil || hasLoneSurrogate(literal, text) {
		return text, "must not contain half a surrogate pair"
	}
	return text, TextProblem(text)
}

// hasLoneSurrogate reports whether a string literal escapes a UTF-16 surrogate that is not part
// of a pair. It encodes no character, and encoding/json replaces it by U+FFFD: the text then has
// more of these than the literal.
func hasLoneSurrogate(literal []byte, text string) bool {
	escapes := bytes.ReplaceAll(literal, []byte(`\\`), nil)
	given := bytes.Count(literal, []byte("\uFFFD")) + bytes.Count(bytes.ToLower(escapes), []byte(`\ufffd`))
	return strings.Count(text, "\uFFFD") > given
}
