//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed, and reports whether another process has
// locked it.
func tryLock(file *os.File) (taken bool, err error) {
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
