package bolt

import (
	"errors"
	"io/fs"
	"os"
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

// openFile opens a file so that reads do not change its access time: such a change
// after each commit makes the next sync write the journal of the file system. Only the owner
// of a file may ask for that.
func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOATIME, 0)
	if errors.Is(err, fs.ErrPermission) {
		return os.OpenFile(path, os.O_RDWR, 0)
	}
	return file, err
}

// readAhead asks the kernel to read the whole file: the records are not in the order of their
// pages, and a disk reads single pages slowly.
func readAhead(file *os.File, size int64) {
	_ = unix.Fadvise(int(file.Fd()), 0, size, unix.FADV_WILLNEED)
}
