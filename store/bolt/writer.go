package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// writeBatch commits a batch of the waiting writes in one transaction. It takes them from the
// queue after a check or a recovery, which can be long: until then their callers can give up. The
// caller holds the write lock.
func (s *Store) writeBatch(ctx context.Context) {
	failure := s.recoverToWrite(ctx)
	if failure != nil && ctx.Err() != nil {
		return // it may be the reason, which is none for the others
	}
	taken := s.queue.Take()
	results := make([]error, len(taken))
	if failure == nil {
		batch := s.table.Begin()
		for i, w := range taken {
			results[i] = w.Value(batch)
		}
		if len(batch.Changes)+len(batch.Past) > 0 {
			failure = s.commitBatch(batch)
		}
	}
	for i, w := range taken {
		w.Finish(outcome(results[i], failure))
	}
}

// outcome returns the result of a write of a batch. If the batch failed, a write that was
// rejected may have been rejected because of another write of the batch, which did not take
// effect: it can be tried again.
func outcome(result, failure error) error {
	switch {
	case failure == nil:
		return result
	case result == nil:
		return failure
	}
	return unavailable("another write of the same commit failed: try again")
}

// commit is a transaction of the engine and what it changes.
type commit struct {
	batch   *table.Batch
	values  [][]byte // the encoded new record of each change, or nil for a delete
	history historyChange
	state   state // afterwards
	txid    uint64
}

// commitBatch makes the changes durable, and only then applies them to the table and
// publishes them. Nothing after the sync can fail. The caller holds the write lock.
func (s *Store) commitBatch(b *table.Batch) error {
	next := &commit{batch: b, values: make([][]byte, len(b.Changes)), history: s.historyAfter(b, time.Now()), txid: s.header.TxID + 1}
	for i, c := range b.Changes {
		if c.New != nil {
			next.values[i] = recordValue(c.New)
			c.New.Checksum = setChecksum(c.New.Sequence, next.values[i])
		}
	}
	if err := s.verifyFile(next); err != nil {
		return err
	}
	next.state = s.state.after(b, next.history)
	tx, err := s.begin(next)
	if err != nil {
		return err
	}
	if err := guard(func() error { return s.commit(tx) }); err != nil {
		s.engine.rollback(tx) // if a panic has left it open
		return s.commitFailed(next, err)
	}
	s.finish(next)
	return nil
}

// begin returns a transaction with the changes.
func (s *Store) begin(next *commit) (*bbolt.Tx, error) {
	var tx *bbolt.Tx
	err := s.engine.callLocking(func() (err error) {
		tx, err = s.engine.db.Begin(true)
		return err
	})
	if err != nil {
		s.needsRecovery = true
		return nil, unavailable(err)
	}
	if uint64(tx.ID()) != next.txid {
		s.engine.rollback(tx)
		return nil, corruptData(errOverwritten)
	}
	if err := guard(func() error { return next.put(tx) }); err != nil {
		s.needsRecovery = true
		s.engine.rollback(tx)
		if errors.Is(err, errPage) {
			return nil, corruptData(err)
		}
		return nil, unavailable(err)
	}
	return tx, nil
}

// appendFill lets the pages of records fill up: records are appended in order, so a page left
// behind gets no more of them.
const appendFill = 0.9

func (next *commit) put(tx *bbolt.Tx) error {
	records := tx.Bucket([]byte(recordsBucket))
	records.FillPercent = appendFill
	for i, c := range next.batch.Changes {
		var err error
		if c.New != nil {
			err = records.Put(recordKey(c.New), next.values[i])
		} else {
			err = deleteEntry(records, c.Old.Sequence, c.Old.ID, c.Old.IsDamaged)
		}
		if err != nil {
			return err
		}
	}
	if err := next.history.put(tx); err != nil {
		return err
	}
	meta := tx.Bucket([]byte(metaBucket))
	return meta.Put([]byte(stateKey), next.state.stored)
}

// deleteEntry deletes an entry. The key of a damaged one may be damaged after its number.
func deleteEntry(bucket *bbolt.Bucket, number uint64, id string, isDamaged bool) error {
	if !isDamaged {
		return bucket.Delete(entryKey(number, id))
	}
	if key, _ := bucket.Cursor().Seek(numberKey(number)); bytes.HasPrefix(key, numberKey(number)) {
		return bucket.Delete(bytes.Clone(key))
	}
	return nil
}

// finish applies and publishes a durable commit. Its root, its freelist and its number of
// pages are not known until its header is read.
func (s *Store) finish(done *commit) {
	s.state, s.header = done.state, pages.Header{TxID: done.txid, PageSize: s.header.PageSize}
	done.history.apply(&s.history)
	s.table.Apply(done.batch)
}

var (
	errReplaced    = errors.New("another file is at the path: restore the original file or restart")
	errMissing     = errors.New("the file was deleted or renamed: restore it at its path or restart")
	errTruncated   = errors.New("the file was truncated")
	errOverwritten = errors.New("another program has changed the file (stop both programs first)")
)

// verifyFile returns an error unless the file at the path is the one that the store
// has open, as the last commit left it, and the pages that the engine reads for the next
// commit, if there is one, are sound. After a delete or a rename, writes would go to a file that the
// next start does not find. The caller holds the write lock.
func (s *Store) verifyFile(next *commit) error {
	size, err := s.checkPath()
	if err != nil {
		return unavailable(err)
	}
	if s.damage != nil {
		return corruptData(s.damage)
	}
	if size < 2*int64(s.header.PageSize) {
		return corruptData(errTruncated)
	}
	err = guard(func() error {
		header, _, err := pages.ReadHeaders(s.engine.mapped(2 * int64(s.header.PageSize)))
		isNew := s.header.Pages == 0 && header.TxID == s.header.TxID
		if err != nil || !isNew && header != s.header {
			return errOverwritten
		}
		if size < header.Size() {
			return errTruncated
		}
		file := &s.pages
		defer file.Reset(nil, pages.Header{}) // the engine can move its mapping
		file.Reset(s.engine.mapped(header.Size()), header)
		if err := verifyState(file, s.state); err != nil {
			return err // the header does not belong to the last commit either
		}
		s.header = header
		err = file.VerifyFreelist()
		if err != nil || next == nil {
			return err
		}
		if err := verifyPaths(file, next.batch); err != nil {
			return err
		}
		if s.backups.Load() == 0 { // a backup reads the history in steps, between writes
			if err := next.history.prune(file, &s.history, s.opts.oldest(time.Now())); err != nil {
				return err
			}
		}
		return next.history.verify(file, &s.history)
	})
	switch {
	case errors.Is(err, pages.ErrDamaged):
		return s.foundDamage(err)
	case err != nil:
		return corruptData(err)
	}
	return nil
}

// checkPath returns the size of the file if it is still at its path.
func (s *Store) checkPath() (int64, error) {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, errMissing
	case err != nil:
		return 0, err
	case !os.SameFile(s.info, info):
		return 0, errReplaced
	}
	return info.Size(), nil
}

// foundDamage refuses all writes from now on: they could spread the damage. Reads go on
// from memory.
func (s *Store) foundDamage(cause error) error {
	if s.damage == nil {
		s.damage = cause
		s.opts.logger.Error("the file is damaged: writes are refused; relayers in memory are sound: back them up", "path", s.path, "error", cause)
	}
	return corruptData(cause)
}

var errContent = fmt.Errorf("%w: the file differs from the records in memory", pages.ErrDamaged)

// verifyPaths verifies the pages that the engine reads for the changes. The engine would
// follow a damaged page: at worst without end, or until the stack overflows. A delete also
// reads siblings, to merge small pages. The changes are sorted by their keys, so that
// consecutive ones share the pages of their paths.
func verifyPaths(file *pages.File, b *table.Batch) error {
	bySequence := func(a, b table.Change) int { return cmp.Compare(a.Record().Sequence, b.Record().Sequence) }
	last := uint64(math.MaxUint64)
	for _, c := range slices.SortedStableFunc(slices.Values(b.Changes), bySequence) {
		r := c.Record()
		var found bool
		var err error
		if c.New == nil {
			found, err = verifyDeleted(file, recordsBucket, r.Sequence, r.ID, r.IsDamaged)
		} else {
			found, err = file.Verify(recordsBucket, recordKey(r), 0)
		}
		// The file does not have the effect of an earlier change of the batch.
		if err == nil && r.Sequence != last && found != (c.Old != nil) {
			err = errContent
		}
		if err != nil {
			return err
		}
		last = r.Sequence
	}
	return nil
}

// verifyState verifies that the file has the state. Another file that was copied over it can have
// the same transaction ID, but not the same checksums.
func verifyState(file *pages.File, want state) error {
	entries, err := readMeta(file)
	if err == nil && !bytes.Equal(entries[stateKey], want.stored) {
		err = errContent
	}
	return err
}

// verifyDeleted verifies the pages that a delete of an entry reads, and reports whether the bucket
// has the entry.
func verifyDeleted(file *pages.File, bucket string, number uint64, id string, isDamaged bool) (found bool, err error) {
	if !isDamaged {
		return file.Verify(bucket, entryKey(number, id), 1)
	}
	// Only the beginning of its key is known. It may be the first key below the next branch.
	if _, err = file.Verify(bucket, numberKey(number), 2); err == nil {
		_, err = file.Verify(bucket, numberKey(number+1), 2)
	}
	return true, err
}

// commitFailed returns the result of a commit that failed. The engine writes the header last: if
// the header is not in the file, nothing of the commit ever takes effect. If it is, its sync
// failed. The recovery syncs it again, and then the result is known. If the recovery fails, the
// writes take effect when a later one succeeds, at the latest before the next write.
func (s *Store) commitFailed(failed *commit, cause error) error {
	s.needsRecovery, s.probed = true, time.Time{}
	newest, _, err := pages.ReadHeaders(s.file)
	if err == nil && newest.TxID < failed.txid {
		return unavailable(cause)
	}
	s.inDoubt = failed
	if s.recoverFile(context.Background()) != nil {
		return fmt.Errorf("%w: %v", relayer.ErrOutcomeUnknown, cause)
	}
	if s.header.TxID == failed.txid {
		return nil
	}
	return unavailable(cause)
}

// recoverFile makes the file safe to write to after a failed commit. It closes the file and
// opens it again, because the engine may regard pages as free that the file uses, and
// makes the headers durable: until then no write may be acknowledged. The file stays locked.
// The transaction ID of the current header says whether the commit in doubt took effect. If a
// step fails, the next write tries again, and reads go on. The caller holds the write lock.
func (s *Store) recoverFile(ctx context.Context) error {
	if !s.needsRecovery {
		return nil
	}
	if err := s.reopen(ctx); err != nil {
		return cmp.Or(ctx.Err(), unavailable(err))
	}
	s.needsRecovery = false
	return nil
}

// recoverToWrite is recoverFile for writes. While the probe fails, it returns before the
// verification of the whole file, which each failing write would repeat.
func (s *Store) recoverToWrite(ctx context.Context) error {
	if s.needsRecovery && s.inDoubt == nil {
		if err := probeDisk(s.path); err != nil {
			return err
		}
	}
	return s.recoverFile(ctx)
}

func (s *Store) reopen(ctx context.Context) (err error) {
	if _, err := s.checkPath(); err != nil {
		return err
	}
	if closing := s.engine; closing != nil {
		if closing.stuck {
			return errStuck
		}
		s.engine = nil
		if err := closing.close(); err != nil {
			return err
		}
	}
	s.engine, err = startEngine(s.file, func(file *os.File) (pages.Header, error) { return s.verifyReopened(ctx, file) })
	if err != nil {
		return err
	}
	header := s.engine.header
	if s.tookEffect(header) {
		s.finish(s.inDoubt)
	}
	s.inDoubt, s.header = nil, header
	return nil
}

// tookEffect reports whether there is a commit in doubt and the header has it.
func (s *Store) tookEffect(header pages.Header) bool {
	return s.inDoubt != nil && header.TxID == s.inDoubt.txid
}

// verifyReopened verifies the file before the engine opens it: all pages, as [Open] does, and that
// the file has the state in memory, with or without the commit in doubt.
func (s *Store) verifyReopened(ctx context.Context, from *os.File) (pages.Header, error) {
	header, _, err := pages.ReadHeaders(from)
	file := pages.NewFile(from, header)
	if err == nil {
		err = s.verifyCommit(file, header)
	}
	for _, bucket := range []string{recordsBucket, historyBucket} {
		if err == nil {
			err = file.Entries(bucket, func(_, _ []byte) (bool, error) { return true, ctx.Err() })
		}
	}
	if err == nil {
		err = file.Freelist()
	}
	if errors.Is(err, pages.ErrDamaged) || errors.Is(err, errOverwritten) {
		err = corruptFile(err)
	}
	return header, err
}

// verifyCommit verifies that the header is that of the last commit, or of the one in doubt, and
// that the file has its state.
func (s *Store) verifyCommit(file *pages.File, header pages.Header) error {
	switch {
	case s.tookEffect(header):
		return verifyState(file, s.inDoubt.state)
	case header.TxID != s.header.TxID:
		return errOverwritten
	}
	return verifyState(file, s.state)
}
