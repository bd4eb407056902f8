package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// probeSize is what a write needs on a full disk: some pages of the tree.
	probeSize = 64 << 10

	// probeInterval bounds the cost of frequent calls of Ready.
	probeInterval = time.Second
)

// Ready returns nil if the store can take writes, and otherwise
// [relayer.ErrUnavailable] with the reason. The reason can be that the file was
// deleted, replaced, truncated or overwritten, that damage was found, that a failed
// commit cannot be recovered, or that the disk has no room. At most once a second it
// writes and removes a small file next to the store's own. It waits for a running check.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.recoverFile(closable{ctx, s.closing}); err != nil {
		return err
	}
	if err := s.verifyFile(); err != nil {
		return err
	}
	return withoutOutcome(s.probe())
}

func (s *Store) probe() error {
	if time.Since(s.probed) < probeInterval && !s.lastCommitFailed {
		return nil
	}
	err := probeDisk(s.path)
	if errors.Is(err, fs.ErrPermission) && s.lastCommitFailed {
		// Only the file itself may be writable: commit a write that changes nothing.
		return s.commitBatch(s.table.Begin())
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return unavailable(err)
	}
	s.probed, s.lastCommitFailed = time.Now(), false
	return nil
}

// probeDisk writes a file next to the store's own.
func probeDisk(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tempSuffix+"*")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, probeSize))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}
