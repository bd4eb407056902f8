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

func openToRead(path string) (*os.File, error) { return os.Open(path) }

func readAhead(*os.File, int64) {}
