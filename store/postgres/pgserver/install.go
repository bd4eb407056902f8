//go:build unix

package pgserver

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Available returns an error that names the missing package if the machine has no
// PostgreSQL server. With -short, nothing is available.
func Available() error {
	if testing.Short() {
		return errors.New("pgserver: skipped by -short")
	}
	_, err := Binaries()
	return err
}

// Binaries returns the directory of initdb: the one on PATH, or the newest of
// those that Debian keeps off PATH.
func Binaries() (string, error) {
	// initdb expects the other programs next to its real file, not next to a link.
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	packaged, _ := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin/initdb")
	if len(packaged) == 0 {
		return "", errors.New("pgserver: no PostgreSQL on this machine: install it (Debian: postgresql-15), or add the directory of initdb to PATH")
	}
	return filepath.Dir(slices.Max(packaged)), nil
}
