package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
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
// It returns [ErrLocked] where another process, or another Store of this one, has
// the file open, and [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat] or [relayer.ErrCorrupt] where it cannot be
// used. Such a file is left as it was, byte for byte.
func Open(path string, opts ...Option) (*Store, error) {
	if path == "" {
		return nil, errors.New("bolt: open: the path is empty")
	}
	s, err := openStore(path, collect(opts))
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	s.writing.Go(s.run)
	return s, nil
}

// openStore makes the path absolute: a recovery opens it again, and by then the
// process may have changed its directory.
func openStore(path string, opts options) (*Store, error) {
	if os.IsPathSeparator(path[len(path)-1]) {
		return nil, fmt.Errorf("%w: it is the name of a directory: choose another path", relayer.ErrUnknownFormat)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	db, err := openOrMake(path, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path:   path,
		opts:   opts,
		queue:  newQueue(),
		turn:   make(chan struct{}, 1),
		commit: (*bbolt.Tx).Commit,
	}
	if err := s.adopt(db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

func openOrMake(path string, opts options) (*engine, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = makeFile(path)
	}
	if err != nil {
		return nil, err
	}
	return openExisting(path, opts, nil)
}

func damaged(what any) error {
	return fmt.Errorf("%w: %v: restore it from a backup", relayer.ErrCorrupt, what)
}

// readLive reads the blocks and compares them with the stored total.
func readLive(db *engine) (alive live, err error) {
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
