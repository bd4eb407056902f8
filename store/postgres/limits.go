package postgres

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
)

// maxRecordSize is the limit of one write. It is far below the limit of the server
// for one message, and far above any relayer.
const maxRecordSize = 256 << 20

// checkLimits returns an error if the tables cannot hold the record.
func checkLimits(rec relayer.Record) error {
	switch {
	case len(rec.ID) == 0 || len(rec.ID) > relayer.MaxIDLength:
		return lengthError("id", 1, relayer.MaxIDLength)
	case !isStorable(rec.ID):
		return invalid("id", "must be UTF-8 without NUL")
	case len(rec.Claim) > relayer.MaxClaimLength:
		return lengthError("claim", 0, relayer.MaxClaimLength)
	case len(rec.Document) > maxRecordSize || len(rec.Private) > maxRecordSize-len(rec.Document):
		return lengthError("", 0, maxRecordSize)
	}
	return nil
}

// checkImportLimits also refuses a revision that leaves no room for later ones.
func checkImportLimits(rec relayer.Record) error {
	if rec.Revision < 1 || rec.Revision > relayer.MaxRevision {
		return invalid("revision", fmt.Sprintf("must be from 1 to %d", uint64(relayer.MaxRevision)))
	}
	return checkLimits(rec)
}

func lengthError(field string, least, most int) error {
	return invalid(field, fmt.Sprintf("must be %d to %d bytes long", least, most))
}

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}

// isStorable reports whether an ID is text for the server. No other ID is ever
// stored.
func isStorable(id string) bool {
	return utf8.ValidString(id) && !strings.Contains(id, "\x00")
}

func sizeOf(rec relayer.Record) int { return len(rec.Document) + len(rec.Private) }
