package bolt

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// sizeAt returns the size of the file at path, and whether it is the known file. It does
// not query the timestamps of the file. After such a query, a kernel with multigrain
// timestamps gives the next write a new time, and its sync writes the journal of the file
// system. That slowed commits by 8 percent.
func sizeAt(path string, known fs.FileInfo) (size int64, found bool, err error) {
	const mask = unix.STATX_INO | unix.STATX_SIZE
	own, ok := known.Sys().(*syscall.Stat_t)
	var stat unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, path, 0, mask, &stat)
	if !ok || err != nil || stat.Mask&mask != mask {
		// Old kernels and some sandboxes do not have statx.
		return sizeByStat(path, known)
	}
	return int64(stat.Size), stat.Ino == own.Ino && unix.Mkdev(stat.Dev_major, stat.Dev_minor) == uint64(own.Dev), nil
}
