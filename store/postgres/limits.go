package postgres

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
	"github.com/go-relayer/relayer/store/transfer"
)

// maxRecordSize is the limit of one write. It is far below the limit of the server
// for one message, and far above any relayer.
const maxRecordSize = 256 << 20

// checkLimits returns an error if the tables cannot hold the record.
func checkLimits(rec relayer.Record) error {
	return cmp.Or(storeutil.Check(rec, maxRecordSize), checkID(rec.ID))
}

func checkID(id string) error {
	if isStorable(id) {
		return nil
	}
	return invalid("id", "must be UTF-8 without NUL")
}

// checkRevision checks the revision of a record to import.
func checkRevision(revision uint64) error {
	if revision < 1 || revision > transfer.MaxRevision {
		return invalid("revision", fmt.Sprintf("must be from 1 to %d", uint64(transfer.MaxRevision)))
	}
	return nil
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
