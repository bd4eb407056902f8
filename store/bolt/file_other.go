//go:build !linux

package bolt

import (
	"io/fs"
	"os"
)

// sizeAt returns the size of the file at path, and whether it is the known file.
func sizeAt(path string, known fs.FileInfo) (size int64, found bool, err error) {
	return sizeByStat(path, known)
}

func openFile(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

func readAhead(*os.File, int64) {}
