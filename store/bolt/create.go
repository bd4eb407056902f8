package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	tempSuffix = ".tmp"

	// tempAge is the age from which a temporary file is a leftover: a new file is
	// complete after milliseconds.
	tempAge = time.Minute
)

// removeTempFiles removes the temporary files that crashed processes left behind.
// The caller has the file open, so that errors do not matter.
func removeTempFiles(path string) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	for _, entry := range entries {
		number, isTemp := strings.CutPrefix(entry.Name(), base+tempSuffix)
		if _, err := strconv.ParseUint(number, 10, 64); !isTemp || err != nil {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > tempAge {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// createFile creates a file at path with the content that write writes. It syncs a
// temporary file and then links it to path, so that no crash leaves half a file at path.
// If the path is taken, it returns [fs.ErrExist] and changes nothing.
func createFile(path string, write func(temp *os.File) error) error {
	name, err := writeTempFile(path, write)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(name) }()
	if err := linkTempFile(name, path); err != nil {
		return &tempError{cause: err, temp: name, path: path}
	}
	return syncDirectory(filepath.Dir(path))
}

// writeTempFile writes and syncs a temporary file next to path and returns its name.
func writeTempFile(path string, write func(temp *os.File) error) (name string, err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tempSuffix+"*")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return "", failed.Err // without the path, which is that of the temporary file
	}
	if err != nil {
		return "", err
	}
	name = temp.Name()
	err = write(temp)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		_ = os.Remove(name)
		return "", &tempError{cause: err, temp: name, path: path}
	}
	return name, nil
}

// tempError replaces the name of the temporary file by the path that the caller
// gave.
type tempError struct {
	cause      error
	temp, path string
}

func (e *tempError) Error() string { return strings.ReplaceAll(e.cause.Error(), e.temp, e.path) }
func (e *tempError) Unwrap() error { return e.cause }

// linkTempFile gives a temporary file its final name unless that is taken. A link
// does both atomically. A file system without links leaves a short gap between the
// two.
func linkTempFile(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	return os.Rename(temp, path)
}

// syncDirectory makes the new name durable. Windows has no such step.
func syncDirectory(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	opened, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
