//go:build !unix || aix || solaris

package bolt

import "os"

// lockFile leaves the lock to the engine, which locks after the file was read. If another
// process has changed the file in between, the open fails.
func lockFile(*os.File) error { return nil }

// closeLocked closes the file, which releases its lock.
func closeLocked(file *os.File) error { return file.Close() }
