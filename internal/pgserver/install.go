//go:build unix

package pgserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Available reports whether the machine has what [New] needs. The error says
// what is missing and what to install.
func Available() error {
	if _, err := findBinaries(); err != nil {
		return err
	}
	_, err := findAccount()
	return err
}

var errNotInstalled = errors.New("pgserver: no PostgreSQL server on this machine: " +
	"install one (apt-get install postgresql), or put the directory of its initdb and postgres on PATH")

// findBinaries returns the directory of initdb and postgres: the one on PATH, or the
// newest of those that Debian keeps off PATH.
func findBinaries() (string, error) {
	var directories []string
	for _, name := range []string{"initdb", "postgres"} {
		// initdb looks for postgres beside its real file, not beside a link to it.
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				directories = append(directories, filepath.Dir(path))
			}
		}
	}
	packaged, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.SortFunc(packaged, func(a, b string) int { return cmp.Compare(majorVersion(b), majorVersion(a)) })
	for _, directory := range append(directories, packaged...) {
		if executable(directory, "initdb") && executable(directory, "postgres") {
			return directory, nil
		}
	}
	return "", errNotInstalled
}

// majorVersion reads the number in /usr/lib/postgresql/15/bin.
func majorVersion(directory string) float64 {
	version, err := strconv.ParseFloat(filepath.Base(filepath.Dir(directory)), 64)
	if err != nil {
		return 0
	}
	return version
}

func executable(directory, name string) bool {
	_, err := exec.LookPath(filepath.Join(directory, name))
	return err == nil
}

// findAccount returns whom the server runs as: nil for the user of this process.
func findAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(found.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgserver: user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(found.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("pgserver: group id of %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("pgserver: PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody: " +
		"make one, or run the tests as another user")
}
