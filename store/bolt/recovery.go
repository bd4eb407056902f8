package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// commitFailed returns the error of a commit that failed. The engine writes the header
// last: if the header is not in the file, nothing of the commit ever takes effect. If it
// is, its sync failed, and the writes take effect when a recovery succeeds, at the latest
// before the next write.
func (s *Store) commitFailed(failed *commit, cause error) error {
	s.needsRecovery, s.probed = true, time.Time{}
	newest, _, err := pages.ReadHeaders(s.identity)
	if err == nil && newest.TxID < failed.txid {
		return unavailable(cause)
	}
	s.inDoubt = failed
	_ = s.recoverFile(s.closing) // the next write tries again
	return fmt.Errorf("%w: %v", relayer.ErrOutcomeUnknown, cause)
}

// recoverFile makes the file safe to write to after a failed commit. It closes the file and
// opens it again, because the engine may regard pages as free that the file uses, and
// makes the headers durable: until then no write may be acknowledged. The transaction ID
// of the current header says whether the commit in doubt took effect. If a step fails,
// the next write tries again, and reads go on. Close and the end of ctx end the wait for the
// lock of the file. The caller holds the write lock.
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
	s.engine, err = s.opts.openEngine(ctx, s.closing, s.path, s.verifyReopened)
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
func (s *Store) verifyReopened(file *os.File) (pages.Header, error) {
	if err := verifyKnown(file, s.info); err != nil {
		return pages.Header{}, err
	}
	header, _, err := pages.ReadHeaders(file)
	if err == nil {
		err = s.verifyContent(file, header)
	}
	if errors.Is(err, pages.ErrDamaged) {
		err = corruptFile(err)
	}
	return header, err
}

// verifyContent verifies what the engine reads when it opens the file, and that the file has
// what is in memory, with or without the commit in doubt.
func (s *Store) verifyContent(file *os.File, header pages.Header) error {
	want := s.state
	switch {
	case s.tookEffect(header):
		want = s.inDoubt.state
	case header.TxID != s.header.TxID:
		return corruptFile(errOverwritten)
	}
	reopened := pages.NewFile(file, header)
	if err := reopened.VerifyFreelist(); err != nil {
		return err
	}
	return verifyState(reopened, want)
}
