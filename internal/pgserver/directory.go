//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// maxSocketPath is the length in bytes of the longest path of a unix socket on
// every system: 104 with its final zero, which Linux has 4 more for.
const maxSocketPath = 103

// makeDirectory makes a directory that belongs to the server's user alone: its
// socket lets everyone in who reaches it.
func makeDirectory(owner *syscall.Credential) (string, error) {
	var refused error
	for _, parent := range slices.Compact([]string{os.TempDir(), "/tmp"}) {
		directory, err := makeDirectoryIn(parent, owner)
		if err == nil {
			return directory, nil
		}
		refused = errors.Join(refused, err)
	}
	return "", fmt.Errorf("pgserver: make a directory: %w", refused)
}

func makeDirectoryIn(parent string, owner *syscall.Credential) (string, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return "", err
	}
	if owner != nil {
		if err := openToAll(parent); err != nil {
			return "", err
		}
	}
	directory, err := os.MkdirTemp(parent, "pg")
	if err != nil {
		return "", err
	}
	if len(socketIn(directory)) > maxSocketPath {
		return "", errors.Join(fmt.Errorf("%s is too long for a unix socket", directory), os.Remove(directory))
	}
	if owner == nil {
		return directory, nil
	}
	if err := os.Chown(directory, int(owner.Uid), int(owner.Gid)); err != nil {
		return "", errors.Join(err, os.Remove(directory))
	}
	return directory, nil
}

// openToAll reports as an error a directory at or above path that another user
// may not pass through.
func openToAll(path string) error {
	for {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&1 == 0 {
			return &fs.PathError{Op: "pass through as another user", Path: path, Err: fs.ErrPermission}
		}
		above := filepath.Dir(path)
		if above == path {
			return nil
		}
		path = above
	}
}
