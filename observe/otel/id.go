package otel

import (
	"strings"

	"github.com/go-relayer/relayer"
)

// isID tells whether id is one that a relayer can have. An operation has
// whatever was sent as one.
func isID(id string) bool {
	return id != "" && len(id) <= relayer.MaxIDLength && !strings.ContainsFunc(id, isForeign)
}

func isForeign(r rune) bool {
	isLetter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	isDigit := '0' <= r && r <= '9'
	return !isLetter && !isDigit && r != '_' && r != '-'
}
