package memory

import (
	"fmt"

	"github.com/go-relayer/relayer"
)

// keepsLimits refuses what a durable store could not take, so that a host that
// moves from this store to another meets no surprise.
func keepsLimits(rec relayer.Record) error {
	if len(rec.ID) == 0 || len(rec.ID) > relayer.MaxIDLength {
		return outOfLimits("id", 1, relayer.MaxIDLength)
	}
	if len(rec.Claim) > relayer.MaxClaimLength {
		return outOfLimits("claim", 0, relayer.MaxClaimLength)
	}
	return nil
}

// keepsImportLimits refuses also a revision that writes could not go on from.
func keepsImportLimits(rec relayer.Record) error {
	if rec.Revision < 1 || rec.Revision > relayer.MaxRevision {
		return invalid("revision", fmt.Sprintf("must be from 1 to %d", relayer.MaxRevision))
	}
	return keepsLimits(rec)
}

func outOfLimits(field string, least, most int) error {
	return invalid(field, fmt.Sprintf("must be %d to %d bytes long", least, most))
}

func invalid(field, message string) error {
	return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: field, Message: message}}}
}

// detached returns the record with bytes of its own.
func detached(rec relayer.Record) relayer.Record {
	detach(&rec, make([]byte, 0, len(rec.Document)+len(rec.Private)))
	return rec
}

// detachAll gives all records bytes of their own, in one allocation.
func detachAll(recs []relayer.Record) {
	size := 0
	for i := range recs {
		size += len(recs[i].Document) + len(recs[i].Private)
	}
	room := make([]byte, 0, size)
	for i := range recs {
		room = detach(&recs[i], room)
	}
}

// detach moves the record's bytes into room and returns what is left of it. The
// capacities end with the bytes, so that an append never reaches the next part.
func detach(rec *relayer.Record, room []byte) []byte {
	rec.Document, room = moved(rec.Document, room)
	rec.Private, room = moved(rec.Private, room)
	return room
}

func moved(part, room []byte) (own, rest []byte) {
	end := len(part)
	own = append(room[:0:end], part...)
	return own, room[end:cap(room)]
}
