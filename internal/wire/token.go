package wire

import "strings"

// IsToken reports whether text can be sent as a bearer token: visible ASCII characters
// only, and at least one.
func IsToken(text string) bool {
	isOther := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	return text != "" && !strings.ContainsFunc(text, isOther)
}
