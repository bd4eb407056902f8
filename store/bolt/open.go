package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/groupcommit"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

const fileMode = 0o600

// Open opens the file at path, and verifies and reads all of it: about a second for a
// million relayers. It creates the file if it does not exist, readable by its owner
// alone. A record that does not match its checksum does not prevent that: see [Store.Get].
//
// It returns [ErrLocked] if another process, or another Store of this process, has
// the file open, and [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat] or
// [relayer.ErrCorrupt] if the file cannot be used. Such a file is not changed. If ctx
// ends while Open waits for the lock or reads the file, Open returns its error.
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
	s.working.Go(s.run)
	s.working.Go(s.compareAlways)
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
	e, loaded, err := openOrCreate(ctx, path, opts)
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
		table:     loaded.table,
		state:     loaded.state,
		header:    loaded.header,
		changes:   table.NewFeed(),
		writeLock: make(chan struct{}, 1),
		engine:    e,
		commit:    (*bbolt.Tx).Commit,
	}
	s.closing, s.cancelWork = context.WithCancel(context.Background())
	if s.identity, s.known, err = identify(path, e); err != nil {
		return nil, errors.Join(err, e.close())
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

func openOrCreate(ctx context.Context, path string, opts options) (*engine, *content, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = createFile(path, func(temp *os.File) error { return writeFile(temp, table.New(0)) })
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	var e *engine
	var loaded *content
	err = opts.whenUnlocked(ctx, func() error {
		e, loaded, err = tryOpen(ctx, path, opts)
		return err
	})
	return e, loaded, err
}

// lockRetry is how often whenUnlocked tries to lock a file that is in use.
const lockRetry = 50 * time.Millisecond

// whenUnlocked calls open until it no longer returns [ErrLocked], or until the lock
// timeout.
func (o options) whenUnlocked(ctx context.Context, open func() error) error {
	deadline := time.Now().Add(o.lockTimeout)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := open()
		if !errors.Is(err, ErrLocked) || time.Now().Add(lockRetry).After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockRetry):
		}
	}
}

// tryOpen reads the file before it opens it for writing, so that a file that cannot be
// used is not changed. Another process can write in between.
func tryOpen(ctx context.Context, path string, opts options) (*engine, *content, error) {
	loaded, info, err := loadFile(ctx, path, opts.logger)
	if err != nil {
		return nil, nil, err
	}
	e, header, err := openForWriting(path, info)
	if err != nil {
		return nil, nil, err
	}
	if header != loaded.header {
		return nil, nil, errors.Join(fmt.Errorf("%w: another process has just changed it", ErrLocked), e.close())
	}
	return e, loaded, nil
}

// openForWriting opens a known file, and makes its headers durable.
func openForWriting(path string, known fs.FileInfo) (*engine, pages.Header, error) {
	if err := verifyOpenable(path); err != nil {
		return nil, pages.Header{}, err
	}
	e, err := openEngine(path, writeOptions(), known)
	if err != nil {
		return nil, pages.Header{}, err
	}
	header, _, err := pages.ReadHeaders(e.file)
	if err == nil {
		err = e.syncHeaders(header.PageSize)
	}
	if err != nil {
		return nil, pages.Header{}, errors.Join(err, e.close())
	}
	return e, header, nil
}

// verifyOpenable verifies what the engine reads when it opens a file.
func verifyOpenable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	header, _, err := pages.ReadHeaders(file)
	if err == nil {
		err = pages.NewFile(file, header).VerifyFreelist()
	}
	if errors.Is(err, pages.ErrDamaged) || errors.Is(err, pages.ErrNoHeader) {
		return corruptFile(err)
	}
	return err
}
