package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var errReplaced = errors.New("another file has taken the place of the one that was opened")

// engine is an open file: the engine that serves it, and the file itself, which
// stays what it is when names change.
type engine struct {
	*bbolt.DB
	file *os.File
}

func (e *engine) size() (int64, error) {
	info, err := e.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// openExisting looks at the file first, in a way that cannot change it. Where
// known is given, no other file is opened than that one.
func openExisting(path string, opts options, known fs.FileInfo) (*engine, error) {
	if err := inspect(path, opts.lockTimeout, known); err != nil {
		return nil, err
	}
	db, err := openEngine(path, engineOptions(path, opts.lockTimeout), known)
	if err != nil {
		return nil, err
	}
	db.AllocSize = growth
	return db, nil
}

func engineOptions(path string, lockTimeout time.Duration) *bbolt.Options {
	return &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		InitialMmapSize: mappingFor(path),
	}
}

// mappingFor leaves room to grow where room costs nothing.
func mappingFor(path string) int {
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	info, err := os.Stat(path)
	if err != nil {
		return mapping
	}
	return max(mapping, 2*int(info.Size()))
}

// openEngine turns the panics of an engine that meets a damaged file into
// errors, and lets go of the file then.
func openEngine(path string, opts *bbolt.Options, known fs.FileInfo) (opened *engine, err error) {
	var file *os.File
	opts.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		// Whoever calls has seen the file: it must not be made again if it has
		// just been removed.
		file, err = openKnown(name, flag&^os.O_CREATE, mode, known)
		return file, err
	}
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			_ = file.Close()
			opened, err = nil, damaged(cause)
		}
	}()
	db, err := bbolt.Open(path, fileMode, opts)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: another process, or another store of this one, has it open", ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	return &engine{db, file}, nil
}

// openKnown compares what it has opened before anything locks or reads it.
func openKnown(name string, flag int, mode os.FileMode, known fs.FileInfo) (*os.File, error) {
	file, err := os.OpenFile(name, flag, mode)
	if err != nil || known == nil {
		return file, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(info, known) {
		err = errReplaced
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// guarded reads a file that nothing vouches for yet.
func guarded(db *engine, run func(*bbolt.Tx) error) error {
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	return contained(tx, run, damaged)
}

// contained runs a function in a transaction that only reads, and ends it. A
// damaged page makes the engine panic, and a page that the disk cannot deliver
// is a fault: the caller gets either as an error.
func contained(tx *bbolt.Tx, run func(*bbolt.Tx) error, told func(cause any) error) (err error) {
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			err = told(cause)
		}
		_ = tx.Rollback()
	}()
	return run(tx)
}
