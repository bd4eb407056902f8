//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockFile locks a file before it is read. The engine locks the same handle again.
func lockFile(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

// closeLocked releases the lock before it closes the file: a file that stays
// mapped stays locked otherwise.
func closeLocked(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// copyOwner gives a file the mode and the owner of another one: a server that runs as that
// user must be able to open it.
func copyOwner(path string, of fs.FileInfo) error {
	owner, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of the file is unknown")
	}
	return errors.Join(os.Chmod(path, of.Mode().Perm()), os.Chown(path, int(owner.Uid), int(owner.Gid)))
}
