package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/go-relayer/relayer"
)

// A record is stored as
//
//	version   1 byte
//	checksum  4 bytes, CRC-32C of the body followed by the revision
//	revision  8 bytes, big-endian
//	body      id, claim and document, each after its length as a uvarint,
//	          then the private part up to the end
//
// The body and its checksum are computed before the write is queued, because all
// writes wait for the writer. The writer assigns the revision.
const (
	recordVersion = 1
	checksumAt    = 1
	revisionAt    = 5
	bodyAt        = 13
)

// maxRecordSize is far below what the engine takes, and far above any relayer.
const maxRecordSize = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errRecord = errors.New("a record does not match its checksum")

// encoded is a record without its revision. Its parts are slices of value.
type encoded struct {
	value                        []byte
	bodySum                      uint32
	id, claim, document, private []byte
}

func encode(rec relayer.Record) encoded {
	size := bodyAt + 3*binary.MaxVarintLen32 + len(rec.ID) + len(rec.Claim) + len(rec.Document) + len(rec.Private)
	e := encoded{value: make([]byte, bodyAt, size)}
	e.value[0] = recordVersion
	e.value, e.id = appendPart(e.value, rec.ID)
	e.value, e.claim = appendPart(e.value, rec.Claim)
	e.value, e.document = appendPart(e.value, rec.Document)
	e.value = append(e.value, rec.Private...)
	e.private = e.value[len(e.value)-len(rec.Private):]
	e.bodySum = crc32.Checksum(e.value[bodyAt:], castagnoli)
	return e
}

// appendPart appends a part after its length, and also returns the copy of the
// part. The value must have room for both.
func appendPart[T string | []byte](value []byte, part T) (extended, copied []byte) {
	value = binary.AppendUvarint(value, uint64(len(part)))
	value = append(value, part...)
	return value, value[len(value)-len(part):]
}

// record returns the record with its revision. It shares the bytes of the value.
func (e encoded) record(revision uint64) relayer.Record {
	return relayer.Record{
		ID: string(e.id), Claim: string(e.claim), Revision: revision, Document: e.document, Private: e.private,
	}
}

// at sets the revision and returns what to store.
func (e encoded) at(revision uint64) []byte {
	binary.BigEndian.PutUint64(e.value[revisionAt:], revision)
	sum := crc32.Update(e.bodySum, castagnoli, e.value[revisionAt:bodyAt])
	binary.BigEndian.PutUint32(e.value[checksumAt:], sum)
	return e.value
}

// stored is a record in the file: its parts are bytes of the mapped file, valid
// only during the transaction, and read-only.
type stored struct {
	sequence                     uint64 // not part of the value: set by the caller of decode
	revision                     uint64
	id, claim, document, private []byte
}

// decode parses a value and verifies its checksum. With an error it returns as
// much as could be parsed.
func decode(value []byte) (stored, error) {
	if len(value) < bodyAt || value[0] != recordVersion {
		return stored{}, errRecord
	}
	rec := stored{revision: binary.BigEndian.Uint64(value[revisionAt:])}
	rest := value[bodyAt:]
	for _, part := range []*[]byte{&rec.id, &rec.claim, &rec.document} {
		size, width := binary.Uvarint(rest)
		if width <= 0 || size > uint64(len(rest)-width) {
			return rec, errRecord
		}
		*part = rest[width : width+int(size)]
		rest = rest[width+int(size):]
	}
	rec.private = rest
	if !checksumHolds(value) {
		return rec, errRecord
	}
	return rec, nil
}

// decodeOf decodes the record that the index names for an ID.
func decodeOf(id string, value []byte) (stored, error) {
	rec, err := decode(value)
	if err == nil && string(rec.id) != id {
		err = errIndex
	}
	if err != nil {
		return stored{}, fmt.Errorf("%w: ID %q", err, id)
	}
	return rec, nil
}

var errIndex = errors.New("the index leads to the record of another ID")

func checksumHolds(value []byte) bool {
	sum := crc32.Checksum(value[bodyAt:], castagnoli)
	sum = crc32.Update(sum, castagnoli, value[revisionAt:bodyAt])
	return sum == binary.BigEndian.Uint32(value[checksumAt:])
}

// copyRecord copies one record out of its transaction, in one allocation.
func (r stored) copyRecord(id string) relayer.Record {
	room := make([]byte, 0, len(r.document)+len(r.private))
	rec := relayer.Record{ID: id, Revision: r.revision, Claim: string(r.claim)}
	rec.Document, room = copyPart(r.document, room)
	rec.Private, _ = copyPart(r.private, room)
	return rec
}

// copyPage copies a page out of its transaction: one allocation for all
// bytes, one for all strings, and the page itself.
func copyPage(page []stored) []relayer.Record {
	var bytesSize, namesSize int
	for i := range page {
		bytesSize += len(page[i].document) + len(page[i].private)
		namesSize += len(page[i].id) + len(page[i].claim)
	}
	room := make([]byte, 0, bytesSize)
	var names strings.Builder
	names.Grow(namesSize)
	recs := make([]relayer.Record, len(page))
	for i, r := range page {
		recs[i].Revision = r.revision
		recs[i].Document, room = copyPart(r.document, room)
		recs[i].Private, room = copyPart(r.private, room)
		recs[i].ID = copyString(&names, r.id)
		recs[i].Claim = copyString(&names, r.claim)
	}
	return recs
}

// copyPart copies a part to the front of room. Its capacity ends with the part, so
// that an append to it does not overwrite the next part.
func copyPart(part, room []byte) (own, rest []byte) {
	end := len(part)
	own = append(room[:0:end], part...)
	return own, room[end:cap(room)]
}

func copyString(names *strings.Builder, part []byte) string {
	start := names.Len()
	names.Write(part)
	return names.String()[start:]
}
