package memory

import (
	"bytes"
	"math"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/limits"
)

// checkLimits enforces the limits of durable stores, so that every record can be moved
// to one. Only the size is not limited.
func checkLimits(rec relayer.Record) error { return limits.Check(rec, math.MaxInt) }

// separateCopyOf copies the document and the private part into separate memory: the copy of
// the document is freed when it is joined with others.
func separateCopyOf(rec relayer.Record) relayer.Record {
	rec.Document, rec.Private = bytes.Clone(rec.Document), bytes.Clone(rec.Private)
	return rec
}

// copyOf copies the bytes of a record with one allocation.
func copyOf(rec relayer.Record) relayer.Record {
	copyInto(&rec, make([]byte, 0, len(rec.Document)+len(rec.Private)))
	return rec
}

// copyAll copies the bytes of all records, with one allocation.
func copyAll(recs []relayer.Record) {
	size := 0
	for i := range recs {
		size += len(recs[i].Document) + len(recs[i].Private)
	}
	room := make([]byte, 0, size)
	for i := range recs {
		room = copyInto(&recs[i], room)
	}
}

// copyInto copies the record's bytes into room and returns the rest of it.
func copyInto(rec *relayer.Record, room []byte) []byte {
	rec.Document, room = copyPart(rec.Document, room)
	rec.Private, room = copyPart(rec.Private, room)
	return room
}

// copyPart limits the capacity of the copy, so that an append to it does not overwrite
// the next part.
func copyPart(part, room []byte) (own, rest []byte) {
	end := len(part)
	own = append(room[:0:end], part...)
	return own, room[end:cap(room)]
}
