//go:build unix

package osfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// CopyOwner gives a file the mode and the owner of another one: a server that runs as that
// user must be able to open it.
func CopyOwner(path string, of fs.FileInfo) error {
	owner, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of the file is unknown")
	}
	return errors.Join(os.Chmod(path, of.Mode().Perm()), os.Chown(path, int(owner.Uid), int(owner.Gid)))
}

// NonBlocking is the flag with which the open of a FIFO does not wait for its other end.
const NonBlocking = syscall.O_NONBLOCK
