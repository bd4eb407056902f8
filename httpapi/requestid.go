package httpapi

import (
	"crypto/rand"
	"net/http"
	"strings"
)

const maxRequestIDLength = 128

// requestID returns the caller's request id where it is sane, and else a fresh
// one. It ends up in logs and in a response header, so it is let through only
// where it can do no harm there.
func requestID(header http.Header) string {
	values := header["X-Request-Id"]
	if len(values) == 1 && isSaneRequestID(values[0]) {
		return values[0]
	}
	return rand.Text()
}

func isSaneRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestIDLength && !strings.ContainsFunc(id, isUnusualInID)
}

func isUnusualInID(r rune) bool {
	isLetter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	isDigit := '0' <= r && r <= '9'
	return !isLetter && !isDigit && !strings.ContainsRune("-_.:/+=@", r)
}
