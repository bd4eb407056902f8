package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// inspect opens the file read-only and verifies that this package created it and
// that it is whole.
func inspect(path string, known fs.FileInfo) error {
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
	e, err := openEngine(path, &bbolt.Options{
		ReadOnly:        true,
		PreLoadFreelist: false,
		FreelistType:    bbolt.FreelistMapType,
		Timeout:         lockOnce,
	}, known)
	if err != nil {
		return inspectionError(err)
	}
	defer func() { _ = e.close() }()
	var tx *bbolt.Tx
	err = e.callLocking(func() (err error) {
		tx, err = e.db.Begin(false)
		return err
	})
	if err != nil {
		return corruptFile(err)
	}
	defer e.rollback(tx)
	var refused error
	if err := guard(func() error { refused = verifyFile(tx, e); return nil }); err != nil {
		return corruptFile(err)
	}
	return refused
}

// verifyFile checks the length before any page, and the buckets before their
// content.
func verifyFile(tx *bbolt.Tx, e *engine) error {
	size, err := e.size()
	if err != nil {
		return err
	}
	if size < tx.Size() {
		return corruptFile(fmt.Sprintf("it ends after %d of %d bytes", size, tx.Size()))
	}
	if err := verifyBuckets(tx, e); err != nil {
		return err
	}
	if err := checkFormat(tx); err != nil {
		return err
	}
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return corruptFile(fmt.Sprintf("bucket %s is missing", name))
		}
	}
	return nil
}

// verifyBuckets verifies the pages that every open reads: the freelist, the tree of
// all buckets, and the small buckets.
func verifyBuckets(tx *bbolt.Tx, e *engine) error {
	file, err := pages.NewFile(e.mapped(tx.Size()), e.pageSize)
	if err != nil {
		return corruptFile(err)
	}
	newest, err := file.Header(uint64(tx.ID()))
	if err != nil {
		return corruptFile(err)
	}
	if err := file.CheckBuckets(newest, blocksBucket, metaBucket); err != nil {
		return corruptFile(err)
	}
	return nil
}

func checkFormat(tx *bbolt.Tx) error {
	meta := tx.Bucket(metaBucket)
	if meta == nil {
		return unknownFormat()
	}
	value, found := bytes.CutPrefix(meta.Get(formatKey), []byte(magic))
	if !found || len(value) != 4 {
		return unknownFormat()
	}
	if version := binary.BigEndian.Uint32(value); version != formatVersion {
		return fmt.Errorf("%w: format %d, and this version reads %d: use the version that created it, or a newer one",
			relayer.ErrNewerFormat, version, formatVersion)
	}
	return nil
}

func unknownFormat() error {
	return fmt.Errorf("%w: choose another path", relayer.ErrUnknownFormat)
}

// inspectionError separates a damaged file from one that is no database, and from one
// that the operating system cannot open now.
func inspectionError(err error) error {
	_, isOfSystem := errors.AsType[syscall.Errno](err)
	switch {
	case isOfSystem, errors.Is(err, ErrLocked), errors.Is(err, relayer.ErrCorrupt), errors.Is(err, errReplaced):
		return err
	case errors.Is(err, berrors.ErrChecksum), errors.Is(err, errPage):
		return corruptFile(err)
	}
	return fmt.Errorf("%w: %v: choose another path, or %s", relayer.ErrUnknownFormat, err, restoreRemedy)
}
