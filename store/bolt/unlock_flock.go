//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
	"os"
	"syscall"
)

// closeLocked releases the lock before it closes the file: a file that stays
// mapped stays locked otherwise.
func closeLocked(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
