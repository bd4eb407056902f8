// Package limits checks the limits of records for the stores of this repository. Its
// functions keep their signatures: stores in other modules use them in later
// versions too.
package limits

import (
	"fmt"

	"github.com/go-relayer/relayer"
)

// Check returns a [*relayer.ValidationError] if the ID or the claim of a record is
// too long, the ID is empty, or Document and Private together exceed maxBytes.
func Check(rec relayer.Record, maxBytes int) error {
	switch {
	case len(rec.ID) == 0 || len(rec.ID) > relayer.MaxIDLength:
		return invalid("id", fmt.Sprintf("must be 1 to %d bytes long", relayer.MaxIDLength))
	case len(rec.Claim) > relayer.MaxClaimLength:
		return invalid("claim", fmt.Sprintf("must be at most %d bytes long", relayer.MaxClaimLength))
	case len(rec.Document) > maxBytes || len(rec.Private) > maxBytes-len(rec.Document):
		return invalid("", fmt.Sprintf("document and private part must be at most %d bytes long together", maxBytes))
	}
	return nil
}

// CheckImport is Check for a record to import, whose revision must be from 1 to
// [relayer.MaxRevision].
func CheckImport(rec relayer.Record, maxBytes int) error {
	if rec.Revision < 1 || rec.Revision > relayer.MaxRevision {
		return invalid("revision", fmt.Sprintf("must be from 1 to %d", relayer.MaxRevision))
	}
	return Check(rec, maxBytes)
}

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}
