package wire

import (
	"strings"
	"unicode"
)

// IsToken reports whether text can be sent as a bearer token: visible ASCII characters
// only, and at least one.
func IsToken(text string) bool {
	isOther := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return text != "" && !strings.ContainsFunc(text, isOther)
}

// Printable returns a text with another character in place of those that are not printable.
func Printable(text string, other rune) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return other
	}, text)
}
