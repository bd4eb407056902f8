package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

var (
	errBusy        = errors.New("a backup or a read is still running: try again")
	errInterrupted = errors.New("a backup or a read was still running when the file was closed, and may fail")
)

// commitFailed returns the error of a transaction whose commit failed. The engine
// writes the header last: if the header is not in the file, nothing of the
// transaction ever takes effect. If it is, its sync failed, and the writes take
// effect when a recovery succeeds, at the latest before the next write.
func (s *Store) commitFailed(txid int, cause error) error {
	s.needsRecovery, s.lastCommitFailed = true, true
	newest, err := newestTransaction(s.engine)
	if err == nil && newest < uint64(txid) {
		return unavailable(cause)
	}
	_ = s.recoverFile(s.closing) // the next write tries again
	return outcomeUnknown(cause)
}

// recoverFile makes the file safe to write to after a failed commit. It first makes
// the headers durable: until then no write may be acknowledged. Then it opens the
// file anew, because the engine may regard pages as free that its readers still
// use. If a step fails, reads go on as long as the old file is open. Close ends the
// wait for the lock of the file. The caller holds the write lock.
func (s *Store) recoverFile(ctx context.Context) error {
	if !s.needsRecovery {
		return nil
	}
	known, err := s.checkPath()
	if err != nil {
		return err
	}
	if s.engine != nil {
		if err := s.closeForRecovery(ctx); err != nil {
			return err
		}
	}
	e, err := openExisting(s.closing, s.path, s.opts, known)
	if err != nil {
		return err
	}
	if err := s.install(e); err != nil {
		return errors.Join(err, e.close())
	}
	s.needsRecovery = false
	return nil
}

func (s *Store) closeForRecovery(ctx context.Context) error {
	if s.engine.stuck {
		return errStuck
	}
	if err := syncHeaders(s.engine); err != nil {
		return err
	}
	if !s.drain(ctx) {
		return errBusy
	}
	closing := s.engine
	s.engine = nil
	return closing.close()
}

// drain takes the current snapshot out of use and ends the transactions of all
// snapshots. If reads are still running after drainTimeout, or when ctx ends, it
// returns false, and the current snapshot stays in use.
func (s *Store) drain(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	deadline := ctx.Done()
	if !s.awaitBackups(deadline) {
		return false
	}
	for _, snap := range s.retired {
		if !snap.await(deadline) {
			return false
		}
	}
	if last := s.current.Swap(nil); last != nil {
		last.release()
		if !last.await(deadline) && last.retain() {
			s.current.Store(last)
			return false
		}
		s.retired = append(s.retired, last)
	}
	s.releaseRetired()
	return true
}

// awaitBackups waits for backups before reads are stopped: a backup can take
// long, and reads go on meanwhile.
func (s *Store) awaitBackups(deadline <-chan struct{}) bool {
	for s.backups.Load() > 0 {
		select {
		case <-deadline:
			return false
		case <-time.After(time.Millisecond):
		}
	}
	return true
}

// checkPath returns the identity of the file if it is still at its path. After a
// delete or a rename, writes would go to a file that the next start does not
// find. The caller holds the write lock.
func (s *Store) checkPath() (fs.FileInfo, error) {
	found, err := isAt(s.path, s.known)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errReplaced
	}
	return s.known, nil
}

func isAtByStat(path string, known fs.FileInfo) (bool, error) {
	found, err := os.Stat(path)
	return err == nil && os.SameFile(known, found), err
}

// install makes an open file the one that the store serves.
func (s *Store) install(e *engine) error {
	snap, err := takeSnapshot(e)
	if err != nil {
		return corruptFile(err)
	}
	err = guard(func() (err error) {
		snap.counts, err = snap.readBlockCounts()
		return err
	})
	if err != nil {
		e.rollback(snap.tx)
		return corruptFile(err)
	}
	s.engine = e
	s.cache.reset(snap)
	// The file may have a commit whose outcome was unknown. Its changes are lost.
	isNewer := s.publishedTx != 0 && snap.tx.ID() > s.publishedTx
	s.publish(snap)
	if isNewer {
		s.changes.PublishGap()
	}
	return nil
}

// newestTransaction returns the ID of the last transaction whose header is in the
// file, synced or not.
func newestTransaction(e *engine) (uint64, error) {
	headers, err := readHeaders(e)
	if err != nil {
		return 0, err
	}
	file, err := pages.NewFile(headers, e.pageSize)
	if err != nil {
		return 0, err
	}
	newest, err := file.Newest()
	return newest.TxID, err
}

// syncHeaders makes both headers durable. The engine reuses the pages that a
// transaction freed as soon as it reads that transaction's header. A header may have
// been written but never synced: the process was killed in between, or the sync
// failed and the kernel marked the page clean. A power cut then loses the header and
// the reused pages with it. Writing the same bytes again marks the pages
// dirty, so that the sync really writes them.
func syncHeaders(e *engine) error {
	headers, err := readHeaders(e)
	if err != nil {
		return err
	}
	if _, err := e.file.WriteAt(headers, 0); err != nil {
		return err
	}
	return e.file.Sync()
}

func readHeaders(e *engine) ([]byte, error) {
	headers := make([]byte, 2*e.pageSize)
	_, err := e.file.ReadAt(headers, 0)
	return headers, err
}
