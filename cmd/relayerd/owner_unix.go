//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// copyOwner gives a file the mode and the owner of another one: a server that runs
// as that user must be able to open it.
func copyOwner(path string, of fs.FileInfo) error {
	if err := os.Chmod(path, of.Mode().Perm()); err != nil {
		return err
	}
	owner, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of the file is unknown")
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}
