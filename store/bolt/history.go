package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// errNoHistory matches [errors.ErrUnsupported].
var errNoHistory = fmt.Errorf("bolt: the store retains no history: %w", errors.ErrUnsupported)

// past is what memory has of an entry of the history.
type past struct {
	revision uint64
	checksum uint32
	time     uint32 // seconds since 1970; 0 if the entry is damaged
}

// entry is an entry of the history in the form of the file.
type entry struct {
	past
	id    string
	value []byte
}

func (e entry) key() []byte { return entryKey(e.revision, e.id) }

func byRevision(a, b entry) int { return cmp.Compare(a.revision, b.revision) }

// history is the index of the history.
type history struct {
	of     map[string]*changes // by ID
	keep   int                 // how many changes of each ID to retain
	newest uint64              // the revision of the last entry of the file
}

// changes are the changes of an ID in the order of their revisions.
type changes struct {
	id    string // a copy: that of a record would keep all of the record in memory
	pasts []past
}

func (h *history) add(id string, p past) {
	c := h.of[id]
	if c == nil {
		c = &changes{id: strings.Clone(id)}
		h.of[c.id] = c
	}
	c.pasts = append(c.pasts, p)
	h.newest = p.revision
}

// find returns the changes of an ID, and the index of the first one that is not below a revision.
func (h *history) find(id string, revision uint64) (*changes, int) {
	c := h.of[id]
	if c == nil {
		return &changes{}, 0
	}
	at, _ := slices.BinarySearchFunc(c.pasts, revision, func(p past, revision uint64) int { return cmp.Compare(p.revision, revision) })
	return c, at
}

// entry returns the changes of the ID of an entry of the file, and the index of the entry. It
// returns false if the entry is not the one in memory.
func (h *history) entry(e table.Record, p past) (c *changes, at int, ok bool) {
	c, at = h.find(e.ID, p.revision)
	return c, at, at < len(c.pasts) && c.pasts[at] == p
}

// oldest returns the time of the oldest change to retain.
func (o options) oldest(now time.Time) uint32 {
	if o.historyChanges == 0 {
		return math.MaxUint32
	}
	return uint32(max(0, now.Add(-o.historyAge).Unix()))
}

// History returns changes of the past, newest first, without private parts: see
// [WithHistory]. It reads them from the file. Writes wait for it, and it waits for writes.
// Changes that were damaged when the file was opened are left out. For other damage, the error
// matches [relayer.ErrCorrupt], and writes are refused as after a failed [Store.Check]. It
// matches [errors.ErrUnsupported] if the store retains no history.
func (s *Store) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	if s.opts.historyChanges == 0 {
		return nil, errNoHistory
	}
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	file, err := s.lastCommit()
	if err != nil {
		return nil, err
	}
	found, err := s.readHistory(ctx, file, query)
	switch {
	case errors.Is(err, pages.ErrDamaged):
		return nil, s.foundDamage(err)
	case err != nil && ctx.Err() == nil:
		return nil, unavailable(err)
	}
	return found, err
}

// maxOld is how many changes that are too old a read of all passes.
const maxOld = 1024

func (s *Store) readHistory(ctx context.Context, file *pages.File, query relayer.HistoryQuery) (found []relayer.RecordChange, err error) {
	oldest := s.opts.oldest(time.Now())
	// A commit in doubt can have added later entries to the file.
	before := min(cmp.Or(query.Before, math.MaxUint64), s.history.newest+1)
	// visit returns false after the last change to return. A clock that was set back then can have
	// given a change an older time than those before it.
	old := 0
	visit := func(key, value []byte) (bool, error) {
		e, p, _ := decodePast(key, value)
		c, at, ok := s.history.entry(e, p)
		isDamaged := p.time == 0
		switch {
		case !ok:
			return false, errContent
		case !isDamaged && p.time < oldest:
			old++
			return old < maxOld, ctx.Err()
		case !isDamaged && at >= len(c.pasts)-s.opts.historyChanges:
			found = append(found, changeOf(e.Record))
		}
		return len(found) < query.Limit, ctx.Err()
	}
	if query.ID == "" {
		return found, file.Descend(historyBucket, numberKey(before), visit)
	}
	c, end := s.history.find(query.ID, before)
	start := min(end, max(0, len(c.pasts)-s.opts.historyChanges))
	for _, p := range slices.Backward(c.pasts[start:end]) {
		if p.time == 0 || p.time < oldest {
			continue // its key may be damaged too, or a commit in doubt can have deleted it
		}
		key, more, problem := entryKey(p.revision, c.id), false, errContent
		err := file.Ascend(historyBucket, key, func(_, value []byte) (bool, error) {
			more, problem = visit(key, value) // a later entry does not match the key of a missing one
			return false, nil
		})
		if err = cmp.Or(err, problem); !more || err != nil {
			return found, err
		}
	}
	return found, nil
}

// lastCommit returns the pages of the file. The caller holds the write lock.
func (s *Store) lastCommit() (*pages.File, error) {
	header, _, err := pages.ReadHeaders(s.file)
	file := pages.NewFile(s.file, header)
	if err == nil {
		err = s.verifyCommit(file, header)
	}
	if err != nil {
		return nil, readError(err)
	}
	return file, nil
}

// readError returns the error of a read of the file, which can be damaged or not readable.
func readError(err error) error {
	if errors.Is(err, pages.ErrDamaged) || errors.Is(err, pages.ErrNoHeader) || errors.Is(err, errOverwritten) {
		return corruptData(err)
	}
	return unavailable(err)
}

// historyChange is what a commit changes in the history.
type historyChange struct {
	added  []entry          // later than all others
	drops  map[*changes]int // how many of the oldest changes of an ID are deleted
	pruned []entry          // the same changes, by revision
}

// pruneStep is how many changes, if not all, must be too old, or too many of their relayer,
// before a write deletes them: old ones then share pages.
const pruneStep = 64

// historyAfter returns what the changes of a batch add to the history.
func (s *Store) historyAfter(b *table.Batch, now time.Time) (h historyChange) {
	if s.opts.historyChanges == 0 {
		return h
	}
	for _, change := range b.History() {
		h.added = append(h.added, newChange(change, now))
	}
	slices.SortFunc(h.added, byRevision) // past changes may be before others of the batch
	return h
}

// prune adds the deletion of changes that are too old, and of those that are too many of the
// relayers that the batch changes. It reads the oldest changes of all from the file.
func (h *historyChange) prune(file *pages.File, all *history, oldest uint32) error {
	h.drops = make(map[*changes]int)
	most, count, isEnd := pruneStep+2*len(h.added), 0, true
	err := file.Ascend(historyBucket, nil, func(key, value []byte) (bool, error) {
		e, p, _ := decodePast(key, value)
		c, at, ok := all.entry(e, p)
		if !ok {
			return false, errContent
		}
		if isEnd = p.time < oldest && count < most; isEnd {
			h.drops[c] = at + 1
			count++
		}
		return isEnd, nil
	})
	if count < pruneStep && !isEnd {
		clear(h.drops)
	}
	for _, e := range h.added {
		c, _ := all.find(e.id, 0)
		if surplus := min(len(c.pasts)-all.keep, most); surplus >= pruneStep {
			h.drops[c] = max(h.drops[c], surplus)
			most -= surplus
		}
	}
	for c, count := range h.drops {
		for _, p := range c.pasts[:count] {
			h.pruned = append(h.pruned, entry{past: p, id: c.id})
		}
	}
	slices.SortFunc(h.pruned, byRevision)
	return err
}

// verify verifies the pages that the engine reads for the change. All entries that are added are
// at the end of the last page, which has the last entry: it could be another page otherwise.
func (h *historyChange) verify(file *pages.File, all *history) error {
	for _, p := range h.pruned {
		if found, err := verifyDeleted(file, historyBucket, p.revision, p.id, p.time == 0); err != nil || !found {
			return cmp.Or(err, errContent)
		}
	}
	newest, want := uint64(0), all.newest
	if len(all.of) == 0 {
		want = 0
	}
	err := file.Descend(historyBucket, nil, func(key, value []byte) (bool, error) {
		e, _, _ := decodePast(key, value)
		newest = e.Sequence
		return false, nil
	})
	if err == nil && newest != want {
		err = errContent
	}
	return err
}

func (h *historyChange) put(tx *bbolt.Tx) error {
	bucket := tx.Bucket([]byte(historyBucket))
	for _, p := range h.pruned {
		if err := deleteEntry(bucket, p.revision, p.id, p.time == 0); err != nil {
			return err
		}
	}
	return putEntries(bucket, h.added)
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

// apply changes the index after a commit.
func (h *historyChange) apply(all *history) {
	for c, count := range h.drops {
		if c.pasts = c.pasts[count:]; len(c.pasts) == 0 {
			delete(all.of, c.id)
		}
	}
	for _, e := range h.added {
		all.add(e.id, e.past)
	}
}

// historyStep is the number of entries of the history that are copied while writes wait.
const historyStep = 256

// copyReadable is copyHistory for a backup, which is sound without the history: it logs a damaged
// page, and passes no entries behind it. A read that fails for another reason is an error.
func (s *Store) copyReadable(ctx context.Context, before uint64, put func([]entry) error) error {
	err := s.copyHistory(ctx, before, put)
	if errors.Is(err, relayer.ErrCorrupt) {
		s.opts.logger.Error("the rest of the history is damaged: it is not copied", "path", s.path, "error", err)
		return nil
	}
	return err
}

// copyHistory passes the entries of changes before a revision to put, some at a time. It leaves
// out damaged ones.
func (s *Store) copyHistory(ctx context.Context, before uint64, put func([]entry) error) error {
	next := []byte{}
	for more := true; more; {
		if err := s.lock(ctx); err != nil {
			return err
		}
		more = false
		var some []entry
		file, err := s.lastCommit()
		if err == nil {
			read := 0
			err = file.Ascend(historyBucket, next, func(key, value []byte) (bool, error) {
				e, p, _ := decodePast(key, value)
				if p.revision >= before {
					return false, nil
				}
				if _, _, ok := s.history.entry(e, p); !ok {
					return false, errContent
				}
				if p.time > 0 {
					some = append(some, entry{p, strings.Clone(e.ID), bytes.Clone(value)})
				}
				read++
				more, next = read == historyStep, append(bytes.Clone(key), 0)
				return !more, nil
			})
			switch {
			case errors.Is(err, pages.ErrDamaged):
				err = s.foundDamage(err)
			case err != nil:
				err = readError(err)
			}
		}
		s.unlock()
		if err = cmp.Or(put(some), err); err != nil {
			return err
		}
	}
	return nil
}
