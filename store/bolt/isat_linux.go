package bolt

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// isAt reports whether path leads to the known file. It does not ask for the times of the
// file: a kernel that was asked gives the next write a new time, which its sync has to
// write to the journal of the file system, at a sixth of the cost of a commit.
func isAt(path string, known fs.FileInfo) (bool, error) {
	own, ok := known.Sys().(*syscall.Stat_t)
	var found unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO, &found)
	if !ok || err != nil || found.Mask&unix.STATX_INO == 0 {
		// An old kernel, or a sandbox, does not have the call.
		return isAtByStat(path, known)
	}
	return found.Ino == own.Ino && unix.Mkdev(found.Dev_major, found.Dev_minor) == uint64(own.Dev), nil
}
