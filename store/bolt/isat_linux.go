package bolt

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// isAt reports whether path leads to the known file. It does not query the timestamps of
// the file. After such a query, a kernel with multigrain timestamps gives the next write a
// new time, and its sync writes the journal of the file system. That slowed commits by 8
// percent.
func isAt(path string, known fs.FileInfo) (bool, error) {
	own, ok := known.Sys().(*syscall.Stat_t)
	var found unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO, &found)
	if !ok || err != nil || found.Mask&unix.STATX_INO == 0 {
		// Old kernels and some sandboxes do not have statx.
		return isAtByStat(path, known)
	}
	return found.Ino == own.Ino && unix.Mkdev(found.Dev_major, found.Dev_minor) == uint64(own.Dev), nil
}
