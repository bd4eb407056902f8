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
	// probeSize is what a write needs on a full disk: some pages of every tree.
	probeSize = 64 << 10

	// probeInterval bounds the cost of frequent calls of Ready.
	probeInterval = time.Second
)

// Ready returns nil if the store can take writes, and otherwise
// [relayer.ErrUnavailable] with the reason. The reason can be that the file was
// deleted, replaced or overwritten, that damage was found, that a failed commit
// cannot be recovered, or that the disk has no room. At most once a second it writes and removes a small file next to
// the store's own. It waits for a running check.
func (s *Store) Ready(ctx context.Context) error {
	return withoutOutcome(s.do(ctx, 0, s.probe))
}

// probe is called with the write lock held.
func (s *Store) probe(b *batchTx) error {
	if time.Since(s.probed) < probeInterval && !s.lastCommitFailed {
		return nil
	}
	err := probeDisk(s.path)
	if errors.Is(err, fs.ErrPermission) && s.lastCommitFailed {
		// Only the file itself may be writable: commit a write that changes nothing.
		return b.countWrite()
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
