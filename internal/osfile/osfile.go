// Package osfile has operations on files that package os lacks.
package osfile

import (
	"errors"
	"os"
	"runtime"
)

// SyncDirectory makes the names of the files in a directory durable. Windows cannot sync
// a directory.
func SyncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
