package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// commitFailed returns the result of a commit that failed. The engine writes the header
// last: if the header is not in the file, nothing of the commit ever takes effect. If it
// is, its sync failed. The recovery syncs it again, and then the result is known. If the
// recovery fails, the writes take effect when a later one succeeds, at the latest before the
// next write.
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

// recoverToWrite is recoverFile for writes. While the disk is full, it returns before the
// verification of the whole file, which each failing write would repeat.
func (s *Store) recoverToWrite(ctx context.Context) error {
	if s.needsRecovery && s.inDoubt == nil {
		if err := probeDisk(s.path); err != nil && !errors.Is(err, fs.ErrPermission) {
			return unavailable(err)
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

// verifyReopened verifies the file before the engine opens it.
func (s *Store) verifyReopened(ctx context.Context, file *os.File) (pages.Header, error) {
	header, _, err := pages.ReadHeaders(file)
	if err == nil {
		err = s.verifyContent(ctx, pages.NewFile(file, header), header)
	}
	if errors.Is(err, pages.ErrDamaged) || errors.Is(err, errOverwritten) {
		err = corruptFile(err)
	}
	return header, err
}

// verifyContent verifies all pages, as [Open] does, and that the
// file has the state in memory, with or without the commit in doubt.
func (s *Store) verifyContent(ctx context.Context, file *pages.File, header pages.Header) error {
	if err := s.verifyCommit(file, header); err != nil {
		return err
	}
	for _, bucket := range []string{recordsBucket, historyBucket} {
		if err := file.Entries(bucket, func(_, _ []byte) (bool, error) { return true, ctx.Err() }); err != nil {
			return err
		}
	}
	return file.Freelist()
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
