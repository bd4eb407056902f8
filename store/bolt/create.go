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
	draftSuffix = ".tmp"

	// draftAge is the age from which a draft is a leftover: creating one takes
	// milliseconds.
	draftAge = time.Minute
)

// removeDrafts removes the drafts that crashed processes left behind. The caller
// has the file open, so that errors do not matter.
func removeDrafts(path string) {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	for _, entry := range entries {
		number, isDraft := strings.CutPrefix(entry.Name(), base+draftSuffix)
		if _, err := strconv.ParseUint(number, 10, 64); !isDraft || err != nil {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > draftAge {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// createFile creates an empty store at path. It writes and syncs a draft and then
// links it to path, so that no crash leaves half a file at path. A file that has
// appeared at path meanwhile stays.
func createFile(path string) error {
	dir, base := filepath.Split(path)
	dir = filepath.Clean(dir)
	draft, err := os.CreateTemp(dir, base+draftSuffix+"*")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err // without the path, which is that of the draft
	}
	if err != nil {
		return err
	}
	name := draft.Name()
	defer func() { _ = os.Remove(name) }()
	if err := finishDraft(draft, path); err != nil {
		return &draftError{cause: err, draft: name, path: path}
	}
	return syncDirectory(dir)
}

func finishDraft(draft *os.File, path string) error {
	if err := draft.Close(); err != nil {
		return err
	}
	if err := fill(draft.Name()); err != nil {
		return fmt.Errorf("create it: %w", err)
	}
	return linkDraft(draft.Name(), path)
}

// draftError replaces the name of the draft by the path that the caller asked
// for.
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

// linkDraft gives the draft its final name unless that is taken. A link does both
// atomically. A file system without links leaves a short gap between the two.
func linkDraft(draft, path string) error {
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
