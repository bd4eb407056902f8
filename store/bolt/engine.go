package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
	"unsafe"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var (
	errReplaced = errors.New("another file is at the path: restore the original file or restart")
	errMissing  = errors.New("the file was deleted or renamed: restore it at its path or restart")
	errStuck    = errors.New("the storage engine failed while it held its locks: restart the process")
)

const (
	// growth is how much a full file grows at once, beyond what it needs.
	growth = 4 << 20

	// leastMapping is the address space that is reserved for a small file. It is
	// leastMappingSmall on systems where address space is scarce or not free.
	leastMapping      = 1 << 30
	leastMappingSmall = 16 << 20
)

// engine is an open file. The engine trusts its pages and panics on damaged ones,
// some of its methods while they hold a lock. The goroutine with the write lock
// is the only one that calls it.
type engine struct {
	db       *bbolt.DB
	file     *os.File
	pageSize int
	mapping  unsafe.Pointer

	// stuck is set after a panic that may have left a lock of db held. No method
	// of db may be called after that.
	stuck bool
}

// errPage is what guard returns for a panic.
var errPage = errors.New("a page is damaged or cannot be read")

// guard runs a function that reads pages. A damaged page makes the engine panic,
// and a page that the disk cannot deliver is a fault: both become errors.
func guard(read func() error) (err error) {
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			err = pageError(cause)
		}
	}()
	return read()
}

// pageError leaves out what the Go runtime says of a fault: it is an address.
func pageError(cause any) error {
	if _, ok := cause.(runtime.Error); ok {
		return errPage
	}
	return fmt.Errorf("%w: %v", errPage, cause)
}

// callLocking calls a method of the engine that takes its locks.
func (e *engine) callLocking(call func() error) error {
	if e.stuck {
		return errStuck
	}
	e.stuck = true
	return guard(func() error {
		err := call()
		e.stuck = false
		return err
	})
}

// rollback ends a transaction without a commit.
func (e *engine) rollback(tx *bbolt.Tx) { _ = e.callLocking(tx.Rollback) }

// close closes the file. A stuck engine cannot unmap it: the address space stays
// reserved until the process ends.
func (e *engine) close() error {
	if e.stuck {
		return errors.Join(errStuck, closeLocked(e.file))
	}
	return e.callLocking(e.db.Close)
}

// abandon closes the file under transactions that are still open. Their pages
// stay mapped until the process ends.
func (e *engine) abandon() error {
	e.stuck = true
	return closeLocked(e.file)
}

func (e *engine) size() (int64, error) {
	info, err := e.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// mapped returns the first bytes of the file as memory-mapped by bbolt. Reads
// beyond the end of the file fault.
func (e *engine) mapped(size int64) []byte {
	return unsafe.Slice((*byte)(e.mapping), size)
}

// lockOnce makes the engine try the lock once: it cannot be canceled.
const lockOnce = time.Nanosecond

// lockRetry is how often openExisting tries to lock a file that is in use.
const lockRetry = 50 * time.Millisecond

// openExisting waits for the lock until the lock timeout. If known is given, it
// opens no other file than that one.
func openExisting(ctx context.Context, path string, opts options, known fs.FileInfo) (*engine, error) {
	deadline := time.Now().Add(opts.lockTimeout)
	for {
		e, err := tryOpen(path, opts, known)
		if !errors.Is(err, ErrLocked) || time.Now().Add(lockRetry).After(deadline) {
			return e, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}

// tryOpen inspects the file read-only first, so that a file that cannot be used is
// not changed.
func tryOpen(path string, opts options, known fs.FileInfo) (*engine, error) {
	if err := inspect(path, known); err != nil {
		return nil, err
	}
	size := mappingFor(path, opts.mapping)
	e, err := openEngine(path, writeOptions(size), known)
	if err != nil {
		return nil, err
	}
	// From here on the engine may write: see writeOptions.
	e.db.NoFreelistSync = false
	e.db.AllocSize = growth
	// The engine maps a file anew when it outgrows its mapping, and waits for all
	// open transactions, including the one that the current snapshot keeps open.
	// With this limit the commit fails instead, and the Store reopens the file
	// with a larger mapping.
	e.db.MaxSize = size - 1
	if err := syncHeaders(e); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// writeOptions keep Open from writing: without NoFreelistSync it would commit a
// freelist to a file that has none, before the headers are synced.
func writeOptions(mapping int) *bbolt.Options {
	return &bbolt.Options{
		Timeout:         lockOnce,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		NoFreelistSync:  true,
		InitialMmapSize: mapping,
	}
}

// mappingFor returns the address space to reserve for a file: at least the given
// size, and room for the file to double.
func mappingFor(path string, least int) int {
	if least == 0 {
		least = leastMapping
		if strconv.IntSize < 64 || runtime.GOOS == "windows" {
			least = leastMappingSmall
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > math.MaxInt/2 {
		return least
	}
	return max(least, 2*int(info.Size()))
}

// openEngine closes the file if the engine panics on it.
func openEngine(path string, opts *bbolt.Options, known fs.FileInfo) (*engine, error) {
	e := &engine{}
	opts.OpenFile = func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
		// The file was there a moment ago: if it has just been removed, it must
		// not be created again.
		e.file, err = openKnown(name, flag&^os.O_CREATE, mode, known)
		return e.file, err
	}
	err := e.callLocking(func() (err error) {
		if e.db, err = bbolt.Open(path, fileMode, opts); err != nil {
			return err
		}
		info := e.db.Info()
		e.pageSize, e.mapping = info.PageSize, *(*unsafe.Pointer)(unsafe.Pointer(&info.Data))
		return nil
	})
	if e.stuck {
		_ = closeLocked(e.file)
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: another process, or another Store of this process, has it open", ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openKnown verifies the identity of the file before anything locks or reads it.
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
