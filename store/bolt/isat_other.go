//go:build !linux

package bolt

import "io/fs"

// isAt reports whether path leads to the known file.
func isAt(path string, known fs.FileInfo) (bool, error) { return isAtByStat(path, known) }
