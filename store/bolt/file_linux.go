package bolt

import (
	"os"

	"golang.org/x/sys/unix"
)

// readAhead asks the kernel to read the whole file: the records are not in the order of their
// pages, and a disk reads single pages slowly.
func readAhead(file *os.File, size int64) {
	_ = unix.Fadvise(int(file.Fd()), 0, size, unix.FADV_WILLNEED)
}
