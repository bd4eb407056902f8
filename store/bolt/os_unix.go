//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
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
