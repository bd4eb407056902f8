//go:build !unix

package main

import (
	"io/fs"
	"os"
)

// copyOwner gives a file the mode of another one.
func copyOwner(path string, of fs.FileInfo) error { return os.Chmod(path, of.Mode().Perm()) }
