package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer"
)

// inspect says whether the file is one of ours and whole, without the means to
// write to it.
func inspect(path string, lockTimeout time.Duration, known fs.FileInfo) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is not a regular file: choose another path", relayer.ErrUnknownFormat)
	}
	if info.Size() == 0 {
		return fmt.Errorf("%w: it is empty: remove it, or choose another path", relayer.ErrUnknownFormat)
	}
	db, err := openEngine(path, &bbolt.Options{
		ReadOnly:        true,
		PreLoadFreelist: false,
		FreelistType:    bbolt.FreelistMapType,
		Timeout:         lockTimeout,
	}, known)
	if err != nil {
		return inspectionError(err)
	}
	defer func() { _ = db.Close() }()
	return guarded(db, func(tx *bbolt.Tx) error { return ours(tx, db) })
}

// ours looks at what marks a file, nearest things first: the length is right
// before any page is touched, and the buckets are there before they are read.
func ours(tx *bbolt.Tx, db *engine) error {
	size, err := db.size()
	if err != nil {
		return err
	}
	if size < tx.Size() {
		return damaged(fmt.Sprintf("it ends after %d of %d bytes", size, tx.Size()))
	}
	if err := usable(tx, db); err != nil {
		return err
	}
	if err := formatIsOurs(tx); err != nil {
		return err
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return damaged(fmt.Sprintf("bucket %s is missing", name))
		}
	}
	return nil
}

// usable looks at the pages that are read at every open, before the engine does:
// the free ones, the root, and those of the small buckets.
func usable(tx *bbolt.Tx, db *engine) error {
	found := &findings{}
	w, newest, ok := walkFrom(context.Background(), db, tx, uint64(tx.ID()), found)
	if !ok {
		return damaged(found.problems[0])
	}
	before := len(found.problems)
	if newest.freelist != noFreelist {
		w.freelist(newest.freelist)
	}
	_ = w.tree(newest.root, keyRange{}, 0, func(p *page, e element, level int) error {
		if !bytes.Equal(e.key, blocksBucket) && !bytes.Equal(e.key, metaBucket) {
			return nil
		}
		return w.openBucket(p, e, level, nothing)
	})
	if len(found.problems) > before {
		return damaged(found.problems[before])
	}
	return nil
}

func nothing(*page, element, int) error { return nil }

func formatIsOurs(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		return foreign()
	}
	value, ours := bytes.CutPrefix(meta.Get(formatKey), []byte(magic))
	if !ours || len(value) != 4 {
		return foreign()
	}
	if version := binary.BigEndian.Uint32(value); version != formatVersion {
		return fmt.Errorf("%w: format %d, and this version knows %d: use the version that made it, or a newer one",
			relayer.ErrNewerFormat, version, formatVersion)
	}
	return nil
}

func foreign() error {
	return fmt.Errorf("%w: something else made it: choose another path", relayer.ErrUnknownFormat)
}

// inspectionError tells a file that is no database at all from one that was.
func inspectionError(err error) error {
	switch {
	case errors.Is(err, ErrLocked), errors.Is(err, relayer.ErrCorrupt), errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist), errors.Is(err, errReplaced):
		return err
	case errors.Is(err, berrors.ErrChecksum):
		return damaged(err)
	}
	return fmt.Errorf("%w: %v: choose another path, or restore it from a backup", relayer.ErrUnknownFormat, err)
}
