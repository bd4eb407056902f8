package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// probeSize is what a write needs on a full disk: some pages of every tree.
const probeSize = 64 << 10

// Ready returns nil if the store can take writes, and otherwise
// [relayer.ErrUnavailable] with the reason: the file was deleted, replaced or
// overwritten, damage was found, or the last commit failed and the disk still has
// no room. It writes nothing to the file, and waits for a running check.
func (s *Store) Ready(ctx context.Context) error {
	return s.do(ctx, 0, func(*change) error { return s.probe() })
}

// probe tries the disk if the last commit failed. The caller holds the write
// lock.
func (s *Store) probe() error {
	if !s.failing {
		return nil
	}
	if err := probeDisk(s.path); err != nil {
		return unavailable(err)
	}
	s.failing = false
	return nil
}

// probeDisk writes a file next to the store's own.
func probeDisk(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+draftSuffix+"*")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, probeSize))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}
