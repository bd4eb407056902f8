//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Account returns the user that servers run as: nil for the current one.
func Account() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("process: PostgreSQL does not run as root: create a user postgres: %w", err)
	}
	uid, badUID := strconv.ParseUint(account.Uid, 10, 32)
	gid, badGID := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(badUID, badGID)
}

// MakeDirectory returns a new directory that only the account can enter, on Linux in memory
// if that has room: what a killed server has written stays there too. The path of a unix
// socket must be short, so it is not in a test's own directory.
func MakeDirectory(account *syscall.Credential) (string, error) {
	directory, err := os.MkdirTemp(parent(), "pg")
	if err != nil {
		return "", fmt.Errorf("process: %w", err)
	}
	if account == nil {
		return directory, nil
	}
	if err := os.Chown(directory, int(account.Uid), int(account.Gid)); err != nil {
		return "", errors.Join(fmt.Errorf("process: %w", err), os.Remove(directory))
	}
	return directory, nil
}
