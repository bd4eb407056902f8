//go:build !linux

package bolt

import "os"

func readAhead(*os.File, int64) {}
