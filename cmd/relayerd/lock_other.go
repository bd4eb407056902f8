//go:build !unix || aix || solaris

package main

import (
	"errors"
	"os"
)

// tryLock fails: this system has no flock.
func tryLock(*os.File) (taken bool, err error) { return false, errors.ErrUnsupported }
