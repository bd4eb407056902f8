package postgres

import (
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// maxRecordSize is the limit of one write. It is far below the limit of the server
// for one message, and far above any relayer.
const maxRecordSize = 256 << 20

// checkLimits returns an error if the tables cannot hold the record.
func checkLimits(rec relayer.Record) error {
	if err := storeutil.Check(rec, maxRecordSize); err != nil || isStorable(rec.ID) {
		return err
	}
	return invalid("id", "must be UTF-8 without NUL")
}

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}

// isStorable reports whether an ID or a term is text for the server. No other is ever
// stored.
func isStorable(text string) bool {
	return utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

func sizeOf(rec relayer.Record) int {
	return len(rec.Document) + len(rec.Private) + len(rec.Text) + len(rec.Note)
}
