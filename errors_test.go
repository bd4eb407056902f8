package relayer_test

import (
	"strings"
	"testing"
)

// TestErrorIsOneLine: a name in the request breaks no log line.
func TestErrorIsOneLine(t *testing.T) {
	_, err := newManager(t).CreateDocument(t.Context(), []byte(evmBody(`"a\nb\u001b[31m":1`)))
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("error text %q", err)
	}
}
