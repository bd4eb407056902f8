package otel

import (
	"strings"

	"github.com/go-relayer/relayer"
)

// isID reports whether id is a valid relayer ID. An operation carries the ID as
// the client sent it.
func isID(id string) bool {
	return id != "" && len(id) <= relayer.MaxIDLength && !strings.ContainsFunc(id, isInvalidInID)
}

func isInvalidInID(r rune) bool {
	isLetter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	isDigit := '0' <= r && r <= '9'
	return !isLetter && !isDigit && r != '_' && r != '-'
}
