package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

const space = " \t\r\n"

// Check returns a message if data is not exactly one JSON object in UTF-8, and "" otherwise.
// encoding/json limits its nesting to 10,000 levels. Check does not check names: a [Decoder] finds
// unknown and duplicate names, with their paths.
func Check(data []byte) (problem string) {
	first := bytes.TrimLeft(data, space)
	switch {
	case !utf8.Valid(data):
		return NotUTF8Message
	case len(first) == 0:
		return "must be a JSON object, not empty"
	case !json.Valid(data):
		return syntaxProblem(data)
	case first[0] != '{':
		return "must be a JSON object"
	}
	return ""
}

func syntaxProblem(data []byte) string {
	// Unlike Unmarshal, a Decoder distinguishes an error inside the first value
	// from data after it.
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil {
		return "must be one JSON object with nothing after it"
	}
	if err, ok := json.Unmarshal(data, &first).(*json.SyntaxError); ok {
		data = data[:max(0, min(int(err.Offset)-1, len(data)))]
	}
	line, start := bytes.Count(data, []byte("\n")), bytes.LastIndexByte(data, '\n')+1
	return fmt.Sprintf("must be valid JSON: the error is at or before line %d, column %d", 1+line, 1+utf8.RuneCount(data[start:]))
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
	return text != "" && isNumberStart(text[0]) && strings.TrimRight(text, space) == text && json.Valid([]byte(text))
}

func isNumberStart(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// NotUTF8Message is the message for a text that is not UTF-8.
const NotUTF8Message = "must be UTF-8"

// Member is a member of an object. Name is its text, and Value its JSON.
type Member struct{ Name, Value []byte }

// MemberList appends the members of an object of a checked document to list, in the order in which
// they are written. It returns nil for what is no object.
func MemberList(list []Member, object []byte) []Member {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	c := cursor{data: object, at: 1}
	for !c.accept('}') {
		name := nameOf(c.next())
		c.accept(':')
		list = append(list, Member{name, c.next()})
		c.accept(',')
	}
	return list
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

// InOrder yields the members of an object, which may have spaces before it.
func InOrder(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := cursor{data: object}
		c.accept('{')
		for !c.accept('}') {
			name := nameOf(c.next())
			c.accept(':')
			// The conversion is here: a short name needs no memory if the caller does not keep
			// it.
			if !yield(string(name), c.next()) {
				return
			}
			c.accept(',')
		}
	}
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

// cursor reads a checked document, so it does not handle syntax errors.
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

// TextProblem returns a message if text cannot be stored unchanged, and "" otherwise.
func TextProblem(text string) string {
	if !utf8.ValidString(text) {
		return NotUTF8Message
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "must not contain NUL"
	}
	return ""
}

// unquote returns the text of a string literal and a message if that text cannot be stored.
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

// The messages for wrong numbers.
const (
	NotWholeMessage  = "must be a whole number"
	NegativeMessage  = "must be 0 or more"
	maxNumberMessage = "must be a number of at most 400 characters, with an exponent from -400 to 400"
)

// maxNumber limits the length of a number, because exact arithmetic could take minutes, and its
// exponent, because [big.Rat] refuses large ones.
const maxNumber = 400

// Whole returns the value of a JSON number literal, or a message if the value has a fraction or
// is negative, or the literal or its exponent is too large. Only the value counts: 5, 5.0 and
// 50e-1 are the same.
func Whole(literal string) (value *big.Int, problem string) {
	if len(literal) > maxNumber || !hasSmallExponent(literal) {
		return nil, maxNumberMessage
	}
	number, _ := new(big.Rat).SetString(literal)
	switch {
	case !number.IsInt():
		return nil, NotWholeMessage
	case number.Sign() < 0:
		return nil, NegativeMessage
	}
	return number.Num(), ""
}

// hasSmallExponent reports whether a literal has no exponent or a small one. It is, too, for
// true, false and null: nothing follows their last e.
func hasSmallExponent(literal string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	size, err := strconv.Atoi(exponent)
	return exponent == "" || err == nil && -maxNumber <= size && size <= maxNumber
}

const floatMessage = "must be a number that a 64-bit float can hold"

// float returns the value of a literal, or a message if it is too large.
func float(literal string) (value float64, problem string) {
	value, err := strconv.ParseFloat(literal, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, floatMessage
	}
	return value, ""
}

// unsigned returns the value of a literal from 0 to limit, or a message.
func unsigned(literal string, limit uint64) (value uint64, problem string) {
	if value, err := strconv.ParseUint(literal, 10, 64); err == nil && value <= limit {
		return value, "" // most numbers
	}
	whole, problem := Whole(literal)
	switch {
	case problem != "":
		return 0, problem
	case !whole.IsUint64() || whole.Uint64() > limit:
		return 0, "must be at most " + strconv.FormatUint(limit, 10)
	}
	return whole.Uint64(), ""
}
