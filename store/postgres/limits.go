package postgres

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
)

// maxRecordSize bounds what is sent at once. It is well below what the server
// takes in one message, and far above any relayer.
const maxRecordSize = 256 << 20

// keepsLimits refuses what has no place in the tables.
func keepsLimits(rec relayer.Record) error {
	switch {
	case len(rec.ID) == 0 || len(rec.ID) > relayer.MaxIDLength:
		return outOfLimits("id", 1, relayer.MaxIDLength)
	case !isStorable(rec.ID):
		return invalid("id", "must be UTF-8 without NUL")
	case len(rec.Claim) > relayer.MaxClaimLength:
		return outOfLimits("claim", 0, relayer.MaxClaimLength)
	case len(rec.Document) > maxRecordSize || len(rec.Private) > maxRecordSize-len(rec.Document):
		return outOfLimits("", 0, maxRecordSize)
	}
	return nil
}

// keepsImportLimits refuses also a revision that writes could not go on from.
func keepsImportLimits(rec relayer.Record) error {
	if rec.Revision < 1 || rec.Revision > relayer.MaxRevision {
		return invalid("revision", fmt.Sprintf("must be from 1 to %d", uint64(relayer.MaxRevision)))
	}
	return keepsLimits(rec)
}

func outOfLimits(field string, least, most int) error {
	return invalid(field, fmt.Sprintf("must be %d to %d bytes long", least, most))
}

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}

// isStorable tells whether an id is text to the server. No other is ever there.
func isStorable(id string) bool {
	return utf8.ValidString(id) && !strings.Contains(id, "\x00")
}

func sizeOf(rec relayer.Record) int { return len(rec.Document) + len(rec.Private) }
