package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"
	"unsafe"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// growth is how much a full file grows at once, beyond what it needs.
const growth = 4 << 20

// isReservingFree is true if memory that is never touched costs nothing. On 32-bit systems
// address space is scarce, and on Windows it is taken from the disk.
const isReservingFree = strconv.IntSize == 64 && runtime.GOOS != "windows"

// reservedMapping is the address space for the mapping of a small file, so that it is not
// mapped again while it grows.
const reservedMapping = 1 << 30

// engine is an open file. The engine trusts its pages and panics on damaged ones,
// some of its methods while they hold a lock. The goroutine with the write lock
// is the only one that calls it.
type engine struct {
	db     *bbolt.DB
	file   *os.File
	header pages.Header // when it was opened

	// stuck is set after a panic that may have left a lock of db held. No method
	// of db may be called after that.
	stuck bool
}

var (
	errPage    = errors.New("a page is damaged or cannot be read")
	errClosing = errors.New("the store is closing")
	errStuck   = errors.New("the storage engine failed while it held its locks: restart the process")
)

// guard runs a function that reads pages. A damaged page makes the engine panic,
// and a page that the disk cannot deliver is a fault: both become errors.
func guard(read func() error) (err error) {
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		switch cause := recover().(type) {
		case nil:
		case runtime.Error:
			err = errPage // the cause is an address
		default:
			err = fmt.Errorf("%w: %v", errPage, cause)
		}
	}()
	return read()
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

// mapped reads the file in the memory of the engine, which needs no system calls. A read can
// fault, so that it is guarded. The size must be that of a part that a commit has used.
func (e *engine) mapped(size int64) io.ReaderAt {
	info := e.db.Info()
	return bytes.NewReader(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&info.Data))), size))
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

// lockRetry is how often openEngine tries to lock a file that is in use.
const lockRetry = 50 * time.Millisecond

// openEngine opens the file at path for writing. While another process has it open, it tries
// again until the lock timeout, or until one of the contexts ends. It tries once in any case: a
// recovery has just closed the file, and must not leave it to other processes.
func (o options) openEngine(ctx, closing context.Context, path string, verify func(*os.File) (pages.Header, error)) (*engine, error) {
	deadline := time.Now().Add(o.lockTimeout)
	for {
		e, err := tryEngine(path, verify)
		if !errors.Is(err, ErrLocked) || time.Now().Add(lockRetry).After(deadline) {
			return e, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-closing.Done():
			return nil, errClosing
		case <-time.After(lockRetry):
		}
	}
}

// tryEngine locks the file and calls verify before anything else, so that a file that cannot
// be used is not changed. verify returns the current header. Then tryEngine makes both headers
// durable. It does not create the file.
func tryEngine(path string, verify func(*os.File) (pages.Header, error)) (*engine, error) {
	e := &engine{}
	options := &bbolt.Options{
		Timeout:      time.Nanosecond, // tries to lock once: it cannot be canceled
		FreelistType: bbolt.FreelistMapType,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			if e.file, err = os.OpenFile(name, flag&^os.O_CREATE, mode); err != nil {
				return nil, err
			}
			if err = lockFile(e.file); err == nil {
				e.header, err = verify(e.file)
			}
			if err != nil {
				_ = e.file.Close()
			}
			return e.file, err
		},
	}
	if isReservingFree {
		options.InitialMmapSize = reservedMapping
	}
	err := e.callLocking(func() (err error) {
		e.db, err = bbolt.Open(path, fileMode, options)
		return err
	})
	if e.stuck {
		_ = closeLocked(e.file)
	}
	if errors.Is(err, berrors.ErrTimeout) {
		err = errInUse
	}
	if err != nil {
		return nil, err
	}
	e.db.AllocSize = growth
	header, _, err := pages.ReadHeaders(e.file)
	if err == nil && header != e.header {
		err = errInUse
	}
	if err == nil {
		err = e.syncHeaders(header.PageSize)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// syncHeaders makes both headers durable. The engine reuses the pages that a
// transaction freed as soon as it reads that transaction's header. A header may have
// been written but never synced: the process was killed in between, or the sync
// failed and the kernel marked the page clean. A power cut then loses the header and
// the reused pages with it. Writing the same bytes again marks the pages
// dirty, so that the sync really writes them.
func (e *engine) syncHeaders(pageSize int) error {
	headers := make([]byte, 2*pageSize)
	if _, err := e.file.ReadAt(headers, 0); err != nil {
		return err
	}
	if _, err := e.file.WriteAt(headers, 0); err != nil {
		return err
	}
	return e.file.Sync()
}
