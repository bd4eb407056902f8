//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile locks a file before it is read. The engine locks a duplicate of the handle again.
func lockFile(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return err
}

// duplicate returns another handle, which shares the lock.
func duplicate(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// isReadOnly reports whether the file system of the file permits no writes.
func isReadOnly(path string) bool { return errors.Is(unix.Access(path, unix.W_OK), unix.EROFS) }

// closeLocked releases the lock before it closes the file: a file that stays
// mapped stays locked otherwise.
func closeLocked(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
