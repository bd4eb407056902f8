package relayer_test

import (
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// A name in a request must not forge a line of a log.
func TestValidationError_OneLine(t *testing.T) {
	_, err := newManager(t).CreateDocument(t.Context(), []byte(evmBody(`"a\nb\u001b[31m":1`)))
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("error text %q", err)
	}
}

func TestValidationError_Text(t *testing.T) {
	err := &relayer.ValidationError{Fields: []relayer.FieldError{{Message: "the body is wrong"}, {Field: "name", Message: "is required"}}}
	if want := "invalid relayer: the body is wrong; name is required"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
