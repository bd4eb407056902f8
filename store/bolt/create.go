package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
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

// createFile creates an empty store at path. It writes and syncs a temporary file
// and then links it to path, so that no crash leaves half a file at path. A file
// that has appeared at path meanwhile stays.
func createFile(path string) error {
	dir, base := filepath.Split(path)
	dir = filepath.Clean(dir)
	temp, err := os.CreateTemp(dir, base+tempSuffix+"*")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err // without the path, which is that of the temporary file
	}
	if err != nil {
		return err
	}
	name := temp.Name()
	defer func() { _ = os.Remove(name) }()
	if err := finishTempFile(temp, path); err != nil {
		return &tempError{cause: err, temp: name, path: path}
	}
	return syncDirectory(dir)
}

func finishTempFile(temp *os.File, path string) error {
	if err := temp.Close(); err != nil {
		return err
	}
	if err := fill(temp.Name()); err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	return linkTempFile(temp.Name(), path)
}

// tempError replaces the name of the temporary file by the path that the caller
// gave.
type tempError struct {
	cause      error
	temp, path string
}

func (e *tempError) Error() string { return strings.ReplaceAll(e.cause.Error(), e.temp, e.path) }
func (e *tempError) Unwrap() error { return e.cause }

func fill(name string) error {
	db, err := bbolt.Open(name, fileMode, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	if err := db.Update(createBuckets); err != nil {
		_ = db.Close()
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	return syncFile(name)
}

// linkTempFile gives a temporary file its final name unless that is taken. A link
// does both atomically. A file system without links leaves a short gap between the
// two.
func linkTempFile(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return os.Rename(temp, path)
}

func syncFile(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
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
