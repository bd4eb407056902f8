//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// Available returns an error that names the missing package if the machine has no
// PostgreSQL server. With -short, nothing is available.
func Available() error {
	if testing.Short() {
		return errors.New("pgserver: skipped by -short")
	}
	_, err := findBinaries()
	return err
}

// findBinaries returns the directory of initdb: the one on PATH, or the newest of
// those that Debian keeps off PATH.
func findBinaries() (string, error) {
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

// findAccount returns the user that the servers run as: nil for the current one.
func findAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("pgserver: PostgreSQL does not run as root: create a user postgres: %w", err)
	}
	uid, badUID := strconv.ParseUint(account.Uid, 10, 32)
	gid, badGID := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(badUID, badGID)
}

// makeDirectory returns a new directory that only the account can enter. The path
// of a unix socket must be short, so it is not in a test's own directory.
func makeDirectory(account *syscall.Credential) (string, error) {
	directory, err := os.MkdirTemp("/tmp", "pg")
	if err != nil {
		return "", fmt.Errorf("pgserver: %w", err)
	}
	if account == nil {
		return directory, nil
	}
	if err := os.Chown(directory, int(account.Uid), int(account.Gid)); err != nil {
		return "", errors.Join(fmt.Errorf("pgserver: %w", err), os.Remove(directory))
	}
	return directory, nil
}
