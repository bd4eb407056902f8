//go:build !unix || aix || solaris

package bolt

import "os"

// lockFile leaves the lock to the engine, which locks after the file was read. If another process
// has changed the file in between, the attempt fails.
func lockFile(*os.File) error { return nil }

// duplicate opens the file again. The lock is that of the new handle.
func duplicate(file *os.File) (*os.File, error) { return os.OpenFile(file.Name(), os.O_RDWR, 0) }

func isReadOnly(string) bool { return false }

func closeLocked(file *os.File) error { return file.Close() }
