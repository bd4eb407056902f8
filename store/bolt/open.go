package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/feed"
	"github.com/go-relayer/relayer/internal/groupcommit"
)

const fileMode = 0o600

// Open opens the file at path. It creates the file if it does not exist, readable
// by its owner alone. It reads no records, so that a large file opens as fast as a
// small one.
//
// It returns [ErrLocked] if another process, or another Store of this process, has
// the file open, and [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat] or
// [relayer.ErrCorrupt] if the file cannot be used. Such a file is not changed. If ctx
// ends while Open waits for the lock, Open returns its error.
func Open(ctx context.Context, path string, opts ...Option) (*Store, error) {
	if path == "" {
		return nil, errors.New("bolt: open: the path is empty")
	}
	collected, err := collect(opts)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	s, err := openStore(ctx, path, collected)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	s.writing.Go(s.run)
	return s, nil
}

// openStore makes the path absolute: a recovery opens it again, and the process
// may have changed its directory by then.
func openStore(ctx context.Context, path string, opts options) (*Store, error) {
	if os.IsPathSeparator(path[len(path)-1]) {
		return nil, fmt.Errorf("%w: it is the name of a directory: choose another path", relayer.ErrUnknownFormat)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	e, err := openOrCreate(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	// The process that created the file may have been killed before it synced the
	// directory: a power cut would then remove the name of the file.
	if err := syncDirectory(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, errors.Join(err, e.close())
	}
	removeTempFiles(path)
	s := &Store{
		path:      path,
		opts:      opts,
		queue:     groupcommit.New[write](groupcommit.Limits{Writes: maxBatchWrites, Bytes: maxBatchBytes}),
		cache:     newCache(opts.cacheBytes),
		changes:   feed.New(relayer.ErrGap, delivered),
		writeLock: make(chan struct{}, 1),
		commit:    (*bbolt.Tx).Commit,
	}
	s.closing, s.cancelWork = context.WithCancel(context.Background())
	if s.identity, s.known, err = identify(path, e); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err := s.install(e); err != nil {
		return nil, errors.Join(err, e.close(), s.identity.Close())
	}
	return s, nil
}

// identify opens a handle that outlives recoveries. It keeps the number of the
// file from being reused for another file.
func identify(path string, e *engine) (*os.File, fs.FileInfo, error) {
	own, err := e.file.Stat()
	if err != nil {
		return nil, nil, err
	}
	file, err := openKnown(path, os.O_RDONLY, 0, own)
	return file, own, err
}

func openOrCreate(ctx context.Context, path string, opts options) (*engine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = createFile(path)
	}
	if err != nil {
		return nil, err
	}
	return openExisting(ctx, path, opts, nil)
}
