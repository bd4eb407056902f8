package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// The buckets of a file.
const (
	metaBucket    = "meta"
	recordsBucket = "relayers" // sequence number and ID -> record
	historyBucket = "history"  // revision -> change
)

// The keys of the entries of metaBucket.
const (
	formatKey  = "format"
	stateKey   = "state"
	summaryKey = "history" // absent in the files of earlier versions
)

// The format entry is the magic followed by the version.
const (
	magic         = "go-relayer relayers"
	formatVersion = 4
)

func format() []byte {
	return binary.BigEndian.AppendUint32([]byte(magic), formatVersion)
}

// readMeta returns the entries by key.
func readMeta(file *pages.File) (map[string][]byte, error) {
	entries := make(map[string][]byte)
	err := file.Entries(metaBucket, nil, func(key, value []byte) (bool, error) {
		switch string(key) {
		case formatKey, stateKey, summaryKey: // a damaged bucket can have any number of others
			entries[string(key)] = bytes.Clone(value)
		}
		return true, nil
	})
	return entries, err
}

// checkFormat returns an error unless the value of the format entry is that of this
// version.
func checkFormat(value []byte) error {
	number, found := bytes.CutPrefix(value, []byte(magic))
	if !found || len(number) != 4 {
		return unknownFormat()
	}
	switch version := binary.BigEndian.Uint32(number); {
	case version < formatVersion:
		return fmt.Errorf("%w: an earlier development version created it (format %d): export the relayers with that version and apply them to a new file",
			relayer.ErrUnknownFormat, version)
	case version > formatVersion:
		return fmt.Errorf("%w: format %d, and this version reads %d: use the version that created it, or a newer one",
			relayer.ErrNewerFormat, version, formatVersion)
	}
	return nil
}

func unknownFormat() error {
	return fmt.Errorf("%w: choose another path", relayer.ErrUnknownFormat)
}

// state is the entry that every write changes. Sum is the sum of the checksums of all
// records, which differs if a record is missing or is an old version.
type state struct {
	total    uint64
	counters table.Counters
	sum      uint64

	// correction is what the next commit adds to the sum: a checksum can be what is
	// damaged in a damaged record.
	correction uint64
}

const stateSize = 4*8 + 4

func (s state) encoded() []byte {
	value := make([]byte, 0, stateSize)
	for _, number := range []uint64{s.total, s.counters.NextSequence, s.counters.NextRevision, s.sum} {
		value = binary.BigEndian.AppendUint64(value, number)
	}
	return binary.BigEndian.AppendUint32(value, crc32.Checksum(value, castagnoli))
}

func decodeState(value []byte) (state, error) {
	if len(value) != stateSize {
		return state{}, errors.New("the state entry is missing")
	}
	numbers, sum := value[:stateSize-4], binary.BigEndian.Uint32(value[stateSize-4:])
	if crc32.Checksum(numbers, castagnoli) != sum {
		return state{}, errors.New("the state entry does not match its checksum")
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(numbers[8*i:]) }
	return state{total: at(0), counters: table.Counters{NextSequence: at(1), NextRevision: at(2)}, sum: at(3)}, nil
}

// after returns the state after the changes.
func (s state) after(b *table.Batch) state {
	s.counters = b.Counters
	s.sum, s.correction = s.sum+s.correction, 0
	for _, c := range b.Changes {
		if c.Old != nil {
			s.total--
			s.sum -= uint64(c.Old.Checksum)
		}
		if c.New != nil {
			s.total++
			s.sum += uint64(c.New.Checksum)
		}
	}
	return s
}

// The key of a record is its sequence number, 8 bytes, its ID, and the CRC-32C of both. The
// ID is also part of the value, so that the ID of a damaged record is known. The value is
//
//	version   1 byte
//	checksum  4 bytes: CRC-32C of the sizes, the parts and the terms, then the sequence number and the revision
//	revision  8 bytes
//	sizes     of the ID and of the claim, 1 byte each, of the text, of the note and of the terms, 2 bytes each, and of
//	          the document, 4 bytes
//	parts     ID, claim, text, note, document, and the private part up to the terms
//	terms     separated by a zero byte, up to the end
//
// Numbers are big-endian. The checksum begins with what is known before the write is
// queued, because all writes wait for the writer.
const (
	recordVersion = 3
	checksumAt    = 1
	revisionAt    = 5
	sizesAt       = 13
	partsAt       = 25
)

const (
	sequenceSize = 8
	sumSize      = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumRecord completes the checksum.
func sumRecord(content uint32, sequence, revision []byte) uint32 {
	return crc32.Update(crc32.Update(content, castagnoli, sequence), castagnoli, revision)
}

// newRecord returns a record for a batch, with the first part of its checksum.
func newRecord(rec relayer.Record) *table.Record {
	r := table.NewRecord(rec)
	r.Checksum = crc32.Checksum(recordValue(r)[sizesAt:], castagnoli)
	return r
}

const termSeparator = "\x00"

func recordKey(r *table.Record) []byte {
	key := make([]byte, 0, sequenceSize+limits.ID+sumSize)
	key = append(binary.BigEndian.AppendUint64(key, r.Sequence()), r.ID()...)
	return binary.BigEndian.AppendUint32(key, crc32.Checksum(key, castagnoli))
}

// recordValue returns the value of a record whose checksum is complete.
func recordValue(r *table.Record) []byte {
	terms := strings.Join(r.Terms(), termSeparator)
	value := make([]byte, 0, partsAt+len(terms)+r.Size())
	value = append(value, recordVersion)
	value = binary.BigEndian.AppendUint32(value, r.Checksum)
	value = binary.BigEndian.AppendUint64(value, r.Revision())
	value = append(value, uint8(len(r.ID())), uint8(len(r.Claim())))
	for _, size := range []int{len(r.Text()), len(r.Note()), len(terms)} {
		value = binary.BigEndian.AppendUint16(value, uint16(size))
	}
	value = binary.BigEndian.AppendUint32(value, uint32(len(r.Document())))
	return append(r.AppendParts(value), terms...)
}

// storedRecord is a decoded entry.
type storedRecord struct {
	table.Stored
	terms []byte // joined
}

// decodeRecord decodes an entry, whose bytes the result shares. A record that does not
// match its checksum is marked as damaged. If the checksum of neither the record nor the key
// confirms its ID, it returns false.
func decodeRecord(key, value []byte) (r storedRecord, ok bool) {
	idEnd := len(key) - sumSize
	if idEnd <= sequenceSize || idEnd > sequenceSize+limits.ID {
		return r, false
	}
	sequence, id := key[:sequenceSize], key[sequenceSize:idEnd]
	r, isSound := decodeValue(value)
	r.Sequence = binary.BigEndian.Uint64(sequence)
	isSound = isSound && sumRecord(crc32.Checksum(value[sizesAt:], castagnoli), sequence, value[revisionAt:sizesAt]) == r.Checksum
	isKeySound := crc32.Checksum(key[:idEnd], castagnoli) == binary.BigEndian.Uint32(key[idEnd:])
	r.IsDamaged = !isSound || !isKeySound || !bytes.Equal(r.ID(), id)
	if !isSound {
		r.Parts, r.IDSize, r.ClaimSize, r.TextSize, r.NoteSize, r.DocumentSize = id, uint8(len(id)), 0, 0, 0, 0
	}
	return r, isSound || isKeySound
}

// decodeValue parses a value. It returns false if its sizes contradict each other.
func decodeValue(value []byte) (r storedRecord, ok bool) {
	if len(value) < partsAt {
		return r, false
	}
	r.Checksum = binary.BigEndian.Uint32(value[checksumAt:])
	r.Revision = binary.BigEndian.Uint64(value[revisionAt:])
	r.IDSize, r.ClaimSize = value[sizesAt], value[sizesAt+1]
	r.TextSize, r.NoteSize = binary.BigEndian.Uint16(value[sizesAt+2:]), binary.BigEndian.Uint16(value[sizesAt+4:])
	terms := int(binary.BigEndian.Uint16(value[sizesAt+6:]))
	r.DocumentSize = binary.BigEndian.Uint32(value[sizesAt+8:])
	termsAt := len(value) - terms
	if value[0] != recordVersion || termsAt < partsAt ||
		r.IDSize == 0 || r.IDSize > limits.ID || r.ClaimSize > limits.Claim ||
		r.TextSize > limits.Text || r.NoteSize > limits.Note {
		return r, false
	}
	r.Parts, r.terms = value[partsAt:termsAt], value[termsAt:]
	sizes := int64(r.IDSize) + int64(r.ClaimSize) + int64(r.TextSize) + int64(r.NoteSize) + int64(r.DocumentSize)
	return r, sizes <= int64(len(r.Parts))
}
