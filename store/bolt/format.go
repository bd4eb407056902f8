package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// The buckets of a file.
const (
	metaBucket    = "meta"
	recordsBucket = "relayers" // sequence number and ID -> record
	historyBucket = "history"  // revision and ID -> change
)

// The keys of the entries of metaBucket.
const (
	formatKey = "format"
	stateKey  = "state"
)

// The format entry is the magic followed by the version.
const (
	magic         = "relayers"
	formatVersion = 1
)

func format() []byte {
	return binary.BigEndian.AppendUint32([]byte(magic), formatVersion)
}

// readMeta returns the entries by key.
func readMeta(file *pages.File) (map[string][]byte, error) {
	entries := make(map[string][]byte)
	err := file.Entries(metaBucket, func(key, value []byte) (bool, error) {
		switch string(key) {
		case formatKey, stateKey: // a damaged bucket can have any number of others
			entries[string(key)] = bytes.Clone(value)
		}
		return true, nil
	})
	return entries, err
}

// checkFormat returns an error unless the format entry has the value of this version.
func checkFormat(value []byte) error {
	number, found := bytes.CutPrefix(value, []byte(magic))
	if !found || len(number) != 4 {
		return errUnknownFormat
	}
	if version := binary.BigEndian.Uint32(number); version != formatVersion {
		return fmt.Errorf("%w: format %d, and this version reads %d: use the version that created it, or a newer one",
			relayer.ErrNewerFormat, version, formatVersion)
	}
	return nil
}

var errUnknownFormat = fmt.Errorf("%w: another program or an earlier development version created it: choose another path, "+
	"or export the relayers with that version and apply them to a new file", relayer.ErrUnknownFormat)

// state is the entry that every write changes.
type state struct {
	counters table.Counters
	records  tally
	changes  tally  // of the history
	stored   []byte // the entry in the file, whose sums can differ if entries are damaged
}

// tally is the number of entries of a bucket, and the sum of their checksums, which differs if
// an entry is missing or is an old version.
type tally struct{ total, sum uint64 }

func (t *tally) add(checksum uint32)    { t.total, t.sum = t.total+1, t.sum+uint64(checksum) }
func (t *tally) remove(checksum uint32) { t.total, t.sum = t.total-1, t.sum-uint64(checksum) }

// compare compares the tally with what was found in the file. A checksum can be what is damaged in a
// damaged entry.
func (t tally) compare(found tally, damaged int, entries string) error {
	if found.total != t.total {
		return corruptFile(fmt.Sprintf("it has %d of %d %s", found.total, t.total, entries))
	}
	if found.sum != t.sum && damaged == 0 {
		return corruptFile(entries + " are missing or are old versions")
	}
	return nil
}

const stateSize = 6*8 + 4

func (s state) encoded() []byte {
	value := make([]byte, 0, stateSize)
	for _, number := range []uint64{
		s.counters.NextSequence, s.counters.NextRevision, s.records.total, s.records.sum, s.changes.total, s.changes.sum,
	} {
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
	return state{
		counters: table.Counters{NextSequence: at(0), NextRevision: at(1)},
		records:  tally{total: at(2), sum: at(3)}, changes: tally{total: at(4), sum: at(5)}, stored: value,
	}, nil
}

// after returns the state after a commit.
func (s state) after(b *table.Batch, history historyChange) state {
	s.counters = b.Counters
	for _, c := range b.Changes {
		if c.Old != nil {
			s.records.remove(c.Old.Checksum)
		}
		if c.New != nil {
			s.records.add(c.New.Checksum)
		}
	}
	for _, p := range history.pruned {
		s.changes.remove(p.checksum)
	}
	for _, e := range history.added {
		s.changes.add(e.checksum)
	}
	s.stored = s.encoded()
	return s
}

// A record and a change of the history have the same form, an entry. The key of an entry is a
// number of 8 bytes, by which entries are in order, the ID, and the CRC-32C of both: the number
// is the sequence number of a record, and the revision of a change. The ID is also part of the
// value, so that the ID of a damaged entry is known. The value is
//
//	version   1 byte
//	checksum  4 bytes: CRC-32C of the sizes, the parts and the terms, then the number of the key and the other number
//	number    8 bytes: the revision of a record, the sequence number of a change
//	sizes     of the ID and of the claim, 1 byte each, of the text, of the note and of the terms, 2 bytes each, and of
//	          the document, 4 bytes
//	parts     ID, claim, text, note, document, and the last part up to the terms
//	terms     separated by a zero byte, up to the end
//
// The last part of a record is its private part. That of a change is its kind, 1 byte, and its
// time, 4 bytes, and if the text or the terms before the change were others, the size of that
// text, 2 bytes, that text, and those terms.
//
// Numbers are big-endian.
const (
	entryVersion = 1
	checksumAt   = 1
	numberAt     = 5
	sizesAt      = 13
	partsAt      = 25

	changeTimeAt = 1
	oldTextAt    = 5
)

var changeKinds = []relayer.ChangeKind{relayer.ChangeCreated, relayer.ChangeUpdated, relayer.ChangeDeleted}

const (
	numberSize = 8
	sumSize    = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a value under a key with a number.
func checksum(number, value []byte) uint32 {
	content := crc32.Checksum(value[sizesAt:], castagnoli)
	return crc32.Update(crc32.Update(content, castagnoli, number), castagnoli, value[numberAt:sizesAt])
}

// setChecksum sets the checksum of the value of an entry, and returns it.
func setChecksum(number uint64, value []byte) uint32 {
	sum := checksum(numberKey(number), value)
	binary.BigEndian.PutUint32(value[checksumAt:], sum)
	return sum
}

const termSeparator = "\x00"

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

func entryKey(number uint64, id string) []byte {
	key := make([]byte, 0, numberSize+limits.ID+sumSize)
	key = append(binary.BigEndian.AppendUint64(key, number), id...)
	return binary.BigEndian.AppendUint32(key, crc32.Checksum(key, castagnoli))
}

func recordKey(r *table.Record) []byte { return entryKey(r.Sequence, r.ID) }

// recordValue returns the value of a record.
func recordValue(r *table.Record) []byte {
	return entryValue(r.Record, r.Private, r.Revision, r.Checksum)
}

// entryValue returns the value of an entry.
func entryValue(rec relayer.Record, last []byte, number uint64, checksum uint32) []byte {
	terms := strings.Join(rec.Terms, termSeparator)
	value := make([]byte, 0, partsAt+len(rec.ID)+len(rec.Claim)+len(rec.Text)+len(rec.Note)+len(rec.Document)+len(last)+len(terms))
	value = append(value, entryVersion)
	value = binary.BigEndian.AppendUint32(value, checksum)
	value = binary.BigEndian.AppendUint64(value, number)
	value = append(value, uint8(len(rec.ID)), uint8(len(rec.Claim)))
	for _, size := range []int{len(rec.Text), len(rec.Note), len(terms)} {
		value = binary.BigEndian.AppendUint16(value, uint16(size))
	}
	value = binary.BigEndian.AppendUint32(value, uint32(len(rec.Document)))
	for _, part := range [...]string{rec.ID, rec.Claim, rec.Text} {
		value = append(value, part...)
	}
	for _, part := range [...][]byte{rec.Note, rec.Document, last} {
		value = append(value, part...)
	}
	return append(value, terms...)
}

// newChange returns an entry of the history. It has no private part of the record.
func newChange(c relayer.RecordChange, now time.Time) entry {
	rec := &c.Record
	e := entry{id: rec.ID, past: past{revision: rec.Revision, time: uint32(now.Unix())}}
	last := binary.BigEndian.AppendUint32([]byte{byte(slices.Index(changeKinds, c.Kind))}, e.time)
	if c.OldText != rec.Text || !slices.Equal(c.OldTerms, rec.Terms) {
		last = binary.BigEndian.AppendUint16(last, uint16(len(c.OldText)))
		last = append(append(last, c.OldText...), strings.Join(c.OldTerms, termSeparator)...)
	}
	e.value = entryValue(*rec, last, rec.Sequence, 0)
	e.checksum = setChecksum(rec.Revision, e.value)
	return e
}

// decodeEntry decodes an entry, whose bytes the record shares. Of a change, the sequence number of
// the record is the revision of the change, and the private part is the last part. An entry that
// does not match its checksum is marked as damaged. If the checksum of neither the value nor the
// key confirms its ID, it returns false.
func decodeEntry(key, value []byte) (r table.Record, ok bool) {
	idEnd := len(key) - sumSize
	if idEnd <= numberSize || idEnd > numberSize+limits.ID {
		return r, false
	}
	number, id := key[:numberSize], view(key[numberSize:idEnd])
	r, isSound := decodeValue(value)
	r.Sequence = binary.BigEndian.Uint64(number)
	isSound = isSound && checksum(number, value) == r.Checksum
	isKeySound := crc32.Checksum(key[:idEnd], castagnoli) == binary.BigEndian.Uint32(key[idEnd:])
	r.IsDamaged = !isSound || !isKeySound || r.ID != id
	if !isSound {
		r.Record = relayer.Record{ID: id, Sequence: r.Sequence, Revision: r.Revision}
	}
	if r.IsDamaged {
		r.Terms = nil // not known
	}
	return r, isSound || isKeySound
}

// decodeValue parses a value. It returns false if its sizes contradict each other.
func decodeValue(value []byte) (r table.Record, ok bool) {
	if len(value) < partsAt {
		return r, false
	}
	r.Checksum = binary.BigEndian.Uint32(value[checksumAt:])
	r.Revision = binary.BigEndian.Uint64(value[numberAt:])
	id, claim := int(value[sizesAt]), int(value[sizesAt+1])
	text, note := int(binary.BigEndian.Uint16(value[sizesAt+2:])), int(binary.BigEndian.Uint16(value[sizesAt+4:]))
	terms, document := int(binary.BigEndian.Uint16(value[sizesAt+6:])), int64(binary.BigEndian.Uint32(value[sizesAt+8:]))
	if value[0] != entryVersion || id == 0 || id > limits.ID || claim > limits.Claim || text > limits.Text || note > limits.Note ||
		int64(partsAt+id+claim+text+note+terms)+document > int64(len(value)) {
		return r, false
	}
	rest := value[partsAt:]
	next := func(size int) (part []byte) {
		part, rest = rest[:size], rest[size:]
		return part
	}
	r.ID, r.Claim, r.Text = view(next(id)), view(next(claim)), view(next(text))
	r.Note, r.Document = next(note), next(int(document))
	r.Private = next(len(rest) - terms)
	r.Terms = splitTerms(view(rest))
	return r, true
}

// view returns bytes as a text without a copy.
func view(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// decodePast returns what memory has of an entry of the history. It returns false if no checksum
// confirms its ID.
func decodePast(key, value []byte) (r table.Record, p past, ok bool) {
	r, ok = decodeEntry(key, value)
	p = past{revision: r.Sequence, checksum: r.Checksum}
	if !r.IsDamaged && isChangePart(r.Private) {
		p.time = binary.BigEndian.Uint32(r.Private[changeTimeAt:])
	}
	return r, p, ok
}

func isChangePart(last []byte) bool {
	if len(last) < oldTextAt || int(last[0]) >= len(changeKinds) {
		return false
	}
	old := last[oldTextAt:]
	return len(old) == 0 || len(old) >= 2 && int(binary.BigEndian.Uint16(old)) <= len(old)-2
}

// changeOf returns a copy of the change of a decoded entry that is not damaged.
func changeOf(entry relayer.Record) relayer.RecordChange {
	rec := table.NewRecord(entry).Record
	for i := range rec.Terms {
		rec.Terms[i] = strings.Clone(rec.Terms[i])
	}
	c := relayer.RecordChange{Kind: changeKinds[rec.Private[0]], Record: rec, OldText: rec.Text, OldTerms: rec.Terms}
	c.Time = time.Unix(int64(binary.BigEndian.Uint32(rec.Private[changeTimeAt:])), 0)
	if old := rec.Private[oldTextAt:]; len(old) > 0 {
		size := int(binary.BigEndian.Uint16(old))
		c.OldText, c.OldTerms = string(old[2:2+size]), splitTerms(string(old[2+size:]))
	}
	c.Record.Private = nil
	c.Record.Sequence, c.Record.Revision = rec.Revision, rec.Sequence
	return c
}

func splitTerms(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, termSeparator)
}
