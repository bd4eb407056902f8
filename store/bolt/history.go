package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// historyStep is the number of entries of the history that are read while writes wait.
const historyStep = 256

// errNoHistory matches [errors.ErrUnsupported].
var errNoHistory = fmt.Errorf("bolt: the store retains no history: %w", errors.ErrUnsupported)

// History returns changes of the past, newest first, without private parts: see
// [WithHistory]. It reads them from the file, and waits for writes. Entries that are damaged
// are logged and left out. It returns an error that matches [relayer.ErrCorrupt] if it can
// read none, and [errors.ErrUnsupported] if the store retains no history.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	if s.opts.historyChanges == 0 {
		return nil, errNoHistory
	}
	r := &historyReader{query: query, before: query.Before, id: sumID([]byte(query.ID))}
	if query.Before == 0 {
		r.before = math.MaxUint64
	}
	for more := true; more; {
		if err := s.lock(ctx); err != nil {
			return nil, err
		}
		file, err := s.lastCommit()
		if err == nil {
			more, err = r.readSome(file, s.history, s.opts)
		}
		s.unlock()
		if err != nil {
			return nil, err
		}
	}
	if r.damage != nil {
		s.opts.log(slog.LevelWarn, "entries of the history are damaged: they are left out", "path", s.path, "error", r.damage)
	}
	if r.damage != nil && len(r.found) == 0 {
		return nil, corruptData(r.damage)
	}
	return r.found, nil
}

// lastCommit returns the pages of the file. The caller holds the write lock.
func (s *Store) lastCommit() (*pages.File, error) {
	header, _, err := pages.ReadHeaders(s.file)
	switch {
	case errors.Is(err, pages.ErrDamaged) || errors.Is(err, pages.ErrNoHeader):
		return nil, corruptData(err)
	case err != nil:
		return nil, unavailable(err)
	}
	file := pages.NewFile(s.file, header)
	if err := s.verifyCommit(file, header); err != nil {
		return nil, corruptData(err)
	}
	return file, nil
}

// past is what memory has of an entry of the history.
type past struct {
	revision uint64
	id       uint32 // the checksum of the ID
	time     uint32 // seconds since 1970; 0 if the entry is damaged
}

const pastKeySize = 8

// summary is the number of the entries of a history and a sum over them, which differ if some
// are missing because a page is an old version.
type summary struct{ count, sum uint64 }

func (s *summary) add(p past) {
	s.count++
	s.sum += p.revision ^ uint64(p.id)<<32 ^ uint64(p.time)
}

func summarize(all []past) (s summary) {
	for _, p := range all {
		s.add(p)
	}
	return s
}

func (s summary) encoded() []byte {
	value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.count), s.sum)
	return binary.BigEndian.AppendUint32(value, crc32.Checksum(value, castagnoli))
}

func (p past) key() []byte { return binary.BigEndian.AppendUint64(nil, p.revision) }

// searchPast returns the index of the first entry that is not below a revision.
func searchPast(all []past, revision uint64) int {
	at, _ := slices.BinarySearchFunc(all, revision, func(p past, revision uint64) int { return cmp.Compare(p.revision, revision) })
	return at
}

func sumID(id []byte) uint32 { return crc32.Checksum(id, castagnoli) }

// historyReader collects the changes of a query, the newest first.
type historyReader struct {
	query  relayer.HistoryQuery
	id     uint32 // the checksum of the ID of the query
	before uint64 // the revisions below were not read yet
	found  []relayer.RecordChange
	damage error
}

// readSome reads some of the entries before those that were read.
func (r *historyReader) readSome(file *pages.File, all []past, opts options) (more bool, err error) {
	end := searchPast(all, r.before)
	start, oldest := max(0, len(all)-opts.historyChanges), opts.oldest(time.Now())
	for read := 0; end > start && len(r.found) < r.query.Limit; {
		p := all[end-1]
		isSelected := r.query.ID == "" || p.id == r.id
		if isSelected && p.time > 0 && p.time >= oldest {
			if read++; read > historyStep {
				return true, nil
			}
			if err := r.read(file, p); err != nil {
				return false, err
			}
		}
		end, r.before = end-1, p.revision
	}
	return false, nil
}

func (r *historyReader) read(file *pages.File, p past) error {
	value, _, err := file.Get(historyBucket, p.key())
	if err != nil && !errors.Is(err, pages.ErrDamaged) {
		return unavailable(err)
	}
	change, ok := decodeChange(p.key(), value)
	switch {
	case err != nil || !ok:
		r.damage = cmp.Or(r.damage, err, fmt.Errorf("the entry of revision %d does not match its checksum", p.revision))
	case r.query.ID == "" || r.query.ID == change.Record.ID:
		r.found = append(r.found, change)
	}
	return nil
}

// historyChange is what a commit changes in the history.
type historyChange struct {
	added  []entry // later than all others
	pruned []past  // the oldest ones
	isNew  bool    // the file has a damaged history
	room   []byte  // of the added entries
}

// entry is a change in the form of the file.
type entry struct {
	past
	value []byte
}

// pruneStep is how many entries must be too many or too old before a write deletes them: they
// then share pages.
const pruneStep = 64

// historyAfter returns what the changes of a batch change in the history. It appends the values
// of the entries to room.
func (o options) historyAfter(all []past, b *table.Batch, now time.Time, room []byte) (h historyChange) {
	h.room = room
	first := max(0, len(b.Changes)-o.historyChanges)
	h.added = make([]entry, 0, len(b.Changes)-first)
	for i, change := range b.RecordChanges()[first:] {
		if !b.Changes[first+i].IsImport { // it has the revision that it had elsewhere
			h.add(change, now)
		}
	}
	if len(b.Past) > 0 {
		for _, change := range b.Past[max(0, len(b.Past)-o.historyChanges):] {
			h.add(change, now)
		}
		slices.SortFunc(h.added, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
	}
	most := min(len(all), pruneStep+2*len(h.added))
	surplus := min(most, max(0, len(all)+len(h.added)-o.historyChanges))
	for oldest := o.oldest(now); surplus < most && all[surplus].time < oldest; {
		surplus++
	}
	if surplus >= pruneStep || surplus == len(all) {
		h.pruned = all[:surplus]
	}
	return h
}

// oldest returns the time of the oldest change to return.
func (o options) oldest(now time.Time) uint32 {
	return uint32(max(0, now.Add(-o.historyAge).Unix()))
}

// apply returns the history after a commit.
func (h historyChange) apply(all []past) []past {
	all = all[len(h.pruned):]
	for _, e := range h.added {
		all = append(all, e.past)
	}
	return all
}

// after returns the summary after a commit.
func (h historyChange) after(s summary) summary {
	pruned := summarize(h.pruned)
	s = summary{s.count - pruned.count, s.sum - pruned.sum}
	for _, e := range h.added {
		s.add(e.past)
	}
	return s
}

func (h historyChange) put(tx *bbolt.Tx) error {
	if h.isNew {
		if err := beginHistory(tx); err != nil {
			return err
		}
	}
	if len(h.pruned)+len(h.added) == 0 {
		return nil // there may be no bucket
	}
	bucket := tx.Bucket([]byte(historyBucket))
	for _, p := range h.pruned {
		if err := bucket.Delete(p.key()); err != nil {
			return err
		}
	}
	return putEntries(bucket, h.added)
}

// maxLeft is how many damaged histories a file can have: the tree of all buckets is one page.
const maxLeft = 8

func leftBucket(number int) string { return fmt.Sprintf("%s %d", historyBucket, number) }

// beginHistory moves a damaged history into another bucket, from which nothing is read any more:
// its pages stay in use until the file is compacted. It begins an empty history.
func beginHistory(tx *bbolt.Tx) error {
	number := 1
	for tx.Bucket([]byte(leftBucket(number))) != nil {
		number++
	}
	left, err := tx.CreateBucket([]byte(leftBucket(number)))
	if err == nil {
		err = tx.MoveBucket([]byte(historyBucket), nil, left)
	}
	if err == nil || errors.Is(err, berrors.ErrBucketNotFound) {
		_, err = tx.CreateBucket([]byte(historyBucket))
	}
	return err
}

// loseHistory leaves out all changes of the past. Damage of the history never refuses a write.
func (c *content) loseHistory(cause error, path string, opts options) {
	if c.history, c.summary = nil, (summary{}); !c.isHistoryDamaged {
		c.isHistoryDamaged = true
		opts.log(slog.LevelError, "the history is damaged: it is left out, and the next write begins a new one", "path", path, "error", cause)
	}
}

// verifyHistory verifies the pages of the history that the engine reads for the next commit. If
// they are damaged, the commit begins a new history, or has none if the file has too many of
// them.
func (s *Store) verifyHistory(next *commit) error {
	if !s.isHistoryDamaged {
		err := next.history.verify(&s.pages, s.history)
		if !errors.Is(err, pages.ErrDamaged) {
			return err
		}
		s.loseHistory(err, s.path, s.opts)
	}
	next.history = historyChange{}
	if _, err := s.pages.Verify(leftBucket(maxLeft), nil, 0); errors.Is(err, pages.ErrNoBucket) {
		next.history = s.opts.historyAfter(nil, next.batch, time.Now(), nil)
		next.history.isNew = true
	}
	return nil
}

func putEntries(bucket *bbolt.Bucket, entries []entry) error {
	bucket.FillPercent = 1 // entries are only appended
	for _, e := range entries {
		if err := bucket.Put(e.key(), e.value); err != nil {
			return err
		}
	}
	return nil
}

// verify verifies the pages that the engine reads for the change. Entries that are pruned follow
// each other: only the first and the last one have neighbors that are not pruned. All entries
// that are added are at the end of the last page, which has the last entry: it could be a page
// of records otherwise.
func (h historyChange) verify(file *pages.File, all []past) error {
	for i, p := range h.pruned {
		siblings := 0
		if i == 0 || i == len(h.pruned)-1 {
			siblings = 1
		}
		if _, err := file.Verify(historyBucket, p.key(), siblings); err != nil {
			return err
		}
	}
	if len(h.added) == 0 {
		return nil
	}
	if len(all) > 0 {
		found, err := file.Verify(historyBucket, all[len(all)-1].key(), 0)
		if err != nil || !found {
			return cmp.Or(err, errContent)
		}
	}
	_, err := file.Verify(historyBucket, h.added[0].key(), 0)
	return err
}

// The key of an entry of the history is its revision, 8 bytes. The value is
//
//	version   1 byte
//	checksum  4 bytes: CRC-32C of what follows, then the key
//	kind      1 byte: the index in changeKinds
//	time      4 bytes: seconds since 1970
//	sequence  8 bytes
//	sizes     of the ID and of the claim, 1 byte each, of the text, of the note, of the terms, of the old text and of
//	          the old terms, 2 bytes each; those of the old ones are 65535 if they are as the others
//	parts     ID, claim, text, note, terms, old text, old terms, and the document up to the end
//
// It has no private part.
const (
	changeVersion   = 1
	changeKindAt    = 5
	changeTimeAt    = 6
	changeSequence  = 10
	changeSizesAt   = 18
	changePartsAt   = 30
	changePartSizes = 7
)

var changeKinds = []relayer.ChangeKind{relayer.ChangeCreated, relayer.ChangeUpdated, relayer.ChangeDeleted}

// asNew is the size of an old part that is equal to the new one.
const asNew = math.MaxUint16

func (h *historyChange) add(change relayer.RecordChange, now time.Time) {
	rec, oldText, oldTerms := change.Record, change.OldText, change.OldTerms
	e := entry{past: past{rec.Revision, sumID([]byte(rec.ID)), uint32(now.Unix())}}
	sizes := [...]int{len(rec.Text), len(rec.Note), joinedSize(rec.Terms), len(oldText), joinedSize(oldTerms)}
	if oldText == rec.Text {
		oldText, sizes[3] = "", asNew
	}
	if slices.Equal(oldTerms, rec.Terms) {
		oldTerms, sizes[4] = nil, asNew
	}
	start := len(h.room)
	value := append(h.room, changeVersion, 0, 0, 0, 0, byte(slices.Index(changeKinds, change.Kind)))
	value = binary.BigEndian.AppendUint32(value, e.time)
	value = binary.BigEndian.AppendUint64(value, rec.Sequence)
	value = append(value, uint8(len(rec.ID)), uint8(len(rec.Claim)))
	for _, part := range sizes {
		value = binary.BigEndian.AppendUint16(value, uint16(part))
	}
	value = append(append(value, rec.ID...), rec.Claim...)
	value = append(append(value, rec.Text...), rec.Note...)
	value = appendJoined(value, rec.Terms)
	value = append(value, oldText...)
	value = appendJoined(value, oldTerms)
	h.room = append(value, rec.Document...)
	e.value = h.room[start:]
	binary.BigEndian.PutUint32(e.value[checksumAt:], sumChange(e.key(), e.value))
	h.added = append(h.added, e)
}

// joinedSize returns the size of the joined terms.
func joinedSize(terms []string) int {
	size := max(0, len(terms)-1) * len(termSeparator)
	for _, term := range terms {
		size += len(term)
	}
	return size
}

func appendJoined(to []byte, terms []string) []byte {
	for i, term := range terms {
		if i > 0 {
			to = append(to, termSeparator...)
		}
		to = append(to, term...)
	}
	return to
}

func sumChange(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(value[changeKindAt:], castagnoli), castagnoli, key)
}

// newPart is the index of the new part of an old one.
var newPart = [changePartSizes]int{5: 2, 6: 4}

// changeParts returns the parts of a value: ID, claim, text, note, terms, old text, old terms,
// document. It returns false if the entry does not match its checksum.
func changeParts(key, value []byte) (parts [changePartSizes + 1][]byte, ok bool) {
	if len(key) != pastKeySize || len(value) < changePartsAt || value[0] != changeVersion ||
		sumChange(key, value) != binary.BigEndian.Uint32(value[checksumAt:]) || int(value[changeKindAt]) >= len(changeKinds) {
		return parts, false
	}
	rest := value[changePartsAt:]
	for i := range changePartSizes {
		size := int(value[changeSizesAt+min(i, 1)])
		if i > 1 {
			size = int(binary.BigEndian.Uint16(value[changeSizesAt+2*(i-1):]))
		}
		if newPart[i] > 0 && size == asNew {
			parts[i] = parts[newPart[i]]
			continue
		}
		if size > len(rest) {
			return parts, false
		}
		parts[i], rest = rest[:size], rest[size:]
	}
	parts[changePartSizes] = rest
	return parts, true
}

// decodePast returns what memory has of an entry, whose key must have the size of one. If the
// entry is damaged, it returns false.
func decodePast(key, value []byte) (p past, ok bool) {
	if len(key) != pastKeySize {
		return p, false
	}
	p.revision = binary.BigEndian.Uint64(key)
	parts, ok := changeParts(key, value)
	if ok {
		p.id, p.time = sumID(parts[0]), binary.BigEndian.Uint32(value[changeTimeAt:])
	}
	return p, ok
}

// decodeChange returns a copy of a change. It returns false if the entry is damaged.
func decodeChange(key, value []byte) (c relayer.RecordChange, ok bool) {
	parts, ok := changeParts(key, value)
	if !ok {
		return c, false
	}
	return relayer.RecordChange{
		Kind: changeKinds[value[changeKindAt]],
		Record: relayer.Record{
			ID: string(parts[0]), Revision: binary.BigEndian.Uint64(key), Sequence: binary.BigEndian.Uint64(value[changeSequence:]),
			Claim: string(parts[1]), Text: string(parts[2]), Note: bytes.Clone(parts[3]), Terms: splitTerms(parts[4]),
			Document: bytes.Clone(parts[7]),
		},
		OldText: string(parts[5]), OldTerms: splitTerms(parts[6]),
	}, true
}

func splitTerms(joined []byte) []string {
	if len(joined) == 0 {
		return nil
	}
	return strings.Split(string(joined), termSeparator)
}

// copyHistory passes the entries of changes before a revision to put, some at a time. Those
// that cannot be read are logged and left out. It returns how many were passed.
func (s *Store) copyHistory(ctx context.Context, before uint64, put func([]entry) error) (copied int, err error) {
	next, unread := uint64(0), 0
	for more := true; more; {
		var some []entry
		if err := s.lock(ctx); err != nil {
			return copied, err
		}
		part := s.history[searchPast(s.history, next):searchPast(s.history, max(next, before))]
		if more = len(part) > historyStep; more {
			part, next = part[:historyStep], part[historyStep].revision
		}
		if file, err := s.lastCommit(); err == nil {
			some = readEntries(file, part)
		}
		unread += len(part) - len(some)
		s.unlock()
		if err := put(some); err != nil {
			return copied, err
		}
		copied += len(some)
	}
	if unread > 0 {
		s.opts.log(slog.LevelWarn, "entries of the history are damaged: they are not copied", "path", s.path, "count", unread)
	}
	return copied, nil
}

// readEntries returns the entries that can be read.
func readEntries(file *pages.File, all []past) (entries []entry) {
	for _, p := range all {
		value, _, err := file.Get(historyBucket, p.key())
		if _, ok := changeParts(p.key(), value); ok && err == nil {
			entries = append(entries, entry{p, bytes.Clone(value)})
		}
	}
	return entries
}
