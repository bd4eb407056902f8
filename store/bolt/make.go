package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"go.etcd.io/bbolt"
)

// makeFile makes an empty store at path. It is made under another name first
// and gets its own when it is whole and synced, so that no crash leaves half a
// file at path. A file that has appeared at path meanwhile stays.
func makeFile(path string) error {
	dir, base := filepath.Split(path)
	dir = filepath.Clean(dir)
	draft, err := os.CreateTemp(dir, base+".tmp*")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err // it names the draft, of which nothing is known here
	}
	if err != nil {
		return err
	}
	name := draft.Name()
	defer func() { _ = os.Remove(name) }()
	if err := finish(draft, path); err != nil {
		return &draftError{cause: err, draft: name, path: path}
	}
	return syncDirectory(dir)
}

func finish(draft *os.File, path string) error {
	if err := draft.Close(); err != nil {
		return err
	}
	if err := fill(draft.Name()); err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	return publish(draft.Name(), path)
}

// draftError tells of the file that was asked for and not of its draft: that name
// means nothing to the caller.
type draftError struct {
	cause       error
	draft, path string
}

func (e *draftError) Error() string { return strings.ReplaceAll(e.cause.Error(), e.draft, e.path) }
func (e *draftError) Unwrap() error { return e.cause }

func fill(name string) error {
	db, err := bbolt.Open(name, fileMode, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return err
	}
	if err := db.Update(layOut); err != nil {
		_ = db.Close()
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	return syncFile(name)
}

// publish gives the file its name unless that is taken. A link does both at
// once; where the file system has none, there is a moment between.
func publish(draft, path string) error {
	err := os.Link(draft, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return os.Rename(draft, path)
}

func syncFile(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// syncDirectory makes the new name itself outlive a power cut, on systems where
// that takes a step of its own.
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
