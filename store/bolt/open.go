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

const (
	fileMode = 0o600

	// growth is how much room a full file takes at once, beyond what it needs.
	growth = 4 << 20

	// mapping is address space set aside for the file. A file that outgrows it
	// is mapped anew, and that waits for every reader, a slow backup included.
	mapping = 1 << 30
)

// Open opens the file at path, and makes it where there is none, readable by
// its owner alone. It reads no records, so that a large file opens as fast as a
// small one.
//
// It returns [ErrLocked] where another process has the file open, and
// [ErrForeign], [ErrNewer] or [ErrDamaged] where it cannot be used. Such a file
// is left as it was, byte for byte.
func Open(path string, opts ...Option) (*Store, error) {
	chosen := collect(opts)
	db, err := openOrMake(path, chosen)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	s := &Store{
		path:   path,
		opts:   chosen,
		queue:  newQueue(),
		turn:   make(chan struct{}, 1),
		commit: (*bbolt.Tx).Commit,
	}
	if err := s.adopt(db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	s.writing.Go(s.run)
	return s, nil
}

func openOrMake(path string, opts options) (*bbolt.DB, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = makeFile(path)
	}
	if err != nil {
		return nil, err
	}
	return openExisting(path, opts)
}

// openExisting looks at the file first, in a way that cannot change it.
func openExisting(path string, opts options) (*bbolt.DB, error) {
	if err := inspect(path, opts.lockTimeout); err != nil {
		return nil, err
	}
	db, err := openEngine(path, engineOptions(path, opts.lockTimeout))
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
func openEngine(path string, opts *bbolt.Options) (db *bbolt.DB, err error) {
	var file *os.File
	opts.OpenFile = func(name string, flag int, mode os.FileMode) (opened *os.File, err error) {
		// Whoever calls has seen the file: it must not be made again if it has
		// just been removed.
		file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
		return file, err
	}
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			_ = file.Close()
			db, err = nil, damaged(cause)
		}
	}()
	db, err = bbolt.Open(path, fileMode, opts)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: another process has it open", ErrLocked)
	}
	return db, err
}

func damaged(what any) error {
	return fmt.Errorf("%w: %v: restore it from a backup", ErrDamaged, what)
}

// readLive reads the blocks and compares them with the stored total.
func readLive(db *bbolt.DB) (alive live, err error) {
	err = guarded(db, func(tx *bbolt.Tx) error {
		now, err := readState(tx)
		if err != nil {
			return damaged(err)
		}
		if alive, err = count(tx); err != nil {
			return damaged(err)
		}
		if uint64(alive.total()) != now.total {
			return damaged("blocks and total differ")
		}
		return nil
	})
	return alive, err
}

// guarded reads a file that nothing vouches for yet.
func guarded(db *bbolt.DB, run func(*bbolt.Tx) error) (err error) {
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			err = damaged(cause)
		}
		_ = tx.Rollback()
	}()
	return run(tx)
}
