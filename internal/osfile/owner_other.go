//go:build !unix

package osfile

import (
	"io/fs"
	"os"
)

// CopyOwner gives a file the mode of another one.
func CopyOwner(path string, of fs.FileInfo) error { return os.Chmod(path, of.Mode().Perm()) }

// NonBlocking is the flag with which the open of a FIFO does not wait for its other end. Only
// Unix has it.
const NonBlocking = 0
