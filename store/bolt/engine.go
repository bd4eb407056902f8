package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// growth is how much a full file of at least this size grows at once, beyond what it needs.
const growth = 4 << 20

// engine is an open file. The engine trusts its pages and panics on damaged ones,
// some of its methods while they hold a lock. The goroutine with the write lock
// is the only one that calls it.
type engine struct {
	db     *bbolt.DB
	file   *os.File     // closed by the engine too
	header pages.Header // when it was opened

	// stuck is set after a panic that may have left a lock of db held. No method of db may be
	// called after that.
	stuck bool
}

var (
	errPage  = errors.New("a page is damaged or cannot be read")
	errStuck = errors.New("a panic interrupted a write: restart the process")
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

// close closes the engine's handle of the file. On Unix the file stays locked by the handle of
// the store. The handle is closed first, because the engine unlocks the file otherwise. A stuck
// engine cannot unmap the file: the address space stays reserved until the process ends.
func (e *engine) close() error {
	err := e.file.Close()
	if e.db == nil {
		return err
	}
	return e.callLocking(func() error {
		_ = e.db.Close() // cannot unlock and close the handle again
		return err
	})
}

const (
	// lockTimeout is long enough for a process that is ending to close the file.
	lockTimeout = time.Second

	// lockRetry is how often openEngine tries to lock a file that is in use.
	lockRetry = 50 * time.Millisecond
)

// openEngine opens and locks the file at path. While another process has it open, it tries
// again until the lock timeout, or until ctx ends. The caller closes both results.
func openEngine(ctx context.Context, path string, verify func(*os.File) (pages.Header, error)) (*os.File, *engine, error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		e, err := tryEngine(file, path, verify)
		if !errors.Is(err, ErrLocked) || time.Now().Add(lockRetry).After(deadline) {
			return file, e, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}

// tryEngine closes the file if it fails. Another process that had the file open can have replaced
// it before it was locked: it is then no longer at its path.
func tryEngine(file *os.File, path string, verify func(*os.File) (pages.Header, error)) (e *engine, err error) {
	defer func() {
		if e == nil { // also after a panic
			_ = closeLocked(file)
		}
	}()
	return startEngine(file, func(file *os.File) (pages.Header, error) {
		locked, err := file.Stat()
		current, pathErr := os.Stat(path)
		switch err = cmp.Or(err, pathErr); {
		case err != nil:
			return pages.Header{}, err
		case !os.SameFile(locked, current):
			return pages.Header{}, errInUse
		}
		return verify(file)
	})
}

// startEngine calls lockFile, and verify before anything else, so a file that cannot be used is
// not changed. verify returns the current header. Then startEngine makes both headers durable. On
// Unix the handle of the engine shares the lock: the file stays locked when the engine is closed.
func startEngine(file *os.File, verify func(*os.File) (pages.Header, error)) (_ *engine, err error) {
	if err := lockFile(file); err != nil {
		return nil, err
	}
	e := &engine{}
	if e.header, err = verify(file); err != nil {
		return nil, err
	}
	if e.file, err = duplicate(file); err != nil {
		return nil, err
	}
	if err := e.open(); err != nil {
		_ = e.close()
		return nil, cmp.Or(lockFile(file), err) // the engine may have unlocked it
	}
	return e, nil
}

func (e *engine) open() error {
	options := &bbolt.Options{
		Timeout:      time.Nanosecond, // tries to lock once: it cannot be canceled
		FreelistType: bbolt.FreelistMapType,
		NoStatistics: true,
		OpenFile:     func(string, int, os.FileMode) (*os.File, error) { return e.file, nil },
	}
	err := e.callLocking(func() (err error) {
		e.db, err = bbolt.Open(e.file.Name(), fileMode, options)
		return err
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return errInUse
	}
	if err != nil {
		return err
	}
	e.db.AllocSize = growth
	header, _, err := pages.ReadHeaders(e.file)
	if err == nil && header != e.header {
		err = errInUse
	}
	if err != nil {
		return err
	}
	return e.syncHeaders(header.PageSize)
}

// syncHeaders makes both headers durable. The engine reuses the pages that a transaction freed as
// soon as it reads that transaction's header. A header may have been written but never synced:
// the process was killed in between, or the sync failed and the kernel marked the page clean. A
// power cut then loses the header and the reused pages with it. Writing the same bytes again
// marks the pages dirty, so the sync really writes them.
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
