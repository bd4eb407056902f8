//go:build !unix || aix || solaris

package bolt

import "os"

// closeLocked closes the file, which releases its lock.
func closeLocked(file *os.File) error { return file.Close() }
