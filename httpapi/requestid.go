package httpapi

import (
	"crypto/rand"
	"net/http"
	"strings"
)

const maxRequestIDLength = 128

// requestID returns the X-Request-Id of the request if it is valid, or a new one.
// The ID is written to logs and to a response header, so only harmless characters
// are valid.
func requestID(header http.Header) string {
	values := header["X-Request-Id"]
	if len(values) == 1 && isRequestID(values[0]) {
		return values[0]
	}
	return rand.Text()
}

func isRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestIDLength && !strings.ContainsFunc(id, isNotOfRequestID)
}

func isNotOfRequestID(r rune) bool {
	isLetter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	isDigit := '0' <= r && r <= '9'
	return !isLetter && !isDigit && !strings.ContainsRune("-_.:/+=@", r)
}
