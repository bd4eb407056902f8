package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/transfer"
)

// fileCopy is a verified copy of a database file to a new file.
type fileCopy struct {
	sourceFlag, source           string
	destinationFlag, destination string
}

func (c fileCopy) check() error {
	if err := checkFile(c.sourceFlag, c.source); err != nil {
		return err
	}
	return checkFile(c.destinationFlag, c.destination)
}

// run returns the number of relayers copied. The lock of the source is held until
// the end.
func (c fileCopy) run(ctx context.Context) (total int, err error) {
	if err := c.checkVacant(ctx); err != nil {
		return 0, err
	}
	source, err := openExistingFile(ctx, c.sourceFlag, c.source, lockOnce())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := source.Check(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", c.sourceFlag, err)
	}
	if err := copyTo(ctx, source, c.destination); err != nil {
		return 0, fmt.Errorf("%s: %w", c.destinationFlag, err)
	}
	_, total, err = source.List(ctx, 0, 0)
	return total, err
}

// checkVacant rejects a destination that exists. If a server has it open, the error
// says so.
func (c fileCopy) checkVacant(ctx context.Context) error {
	_, err := os.Lstat(c.destination)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.destinationFlag, err)
	}
	existing, err := openExistingFile(ctx, c.destinationFlag, c.destination, lockOnce())
	if errors.Is(err, bolt.ErrLocked) {
		return err
	}
	if err == nil {
		_ = existing.Close() // nothing was written
	}
	return fmt.Errorf("%s: %s exists: move it to another name first", c.destinationFlag, c.destination)
}

func copyTo(ctx context.Context, source *bolt.Store, destination string) error {
	temp, err := writeTemp(ctx, source, destination)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := checkCopy(ctx, temp); err != nil {
		return err
	}
	return publish(temp, destination)
}

const tempSuffix = ".tmp"

// createTemp creates an empty file next to path. [bolt.Open] removes such files that
// a crash left behind.
func createTemp(path string) (*os.File, error) {
	directory := filepath.Dir(path)
	file, err := os.CreateTemp(directory, filepath.Base(path)+tempSuffix+"*")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("cannot create a file in %s: %w", directory, failed.Err)
	}
	return file, err
}

// writeTemp copies a store to a new file next to path and returns its name.
func writeTemp(ctx context.Context, source *bolt.Store, path string) (name string, err error) {
	temp, err := createTemp(path)
	if err != nil {
		return "", err
	}
	_, err = source.Backup(ctx, temp)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return "", errors.Join(err, os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

func checkCopy(ctx context.Context, path string) error {
	copied, err := bolt.Open(ctx, path)
	if err != nil {
		return err
	}
	return errors.Join(copied.Check(ctx), copied.Close())
}

// publish gives a temporary file its final name, unless that is taken. On a file system
// without hard links, another process can take the name between the test and the rename.
func publish(temp, path string) error {
	err := os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: move it to another name first", path)
	}
	if err != nil {
		if _, exists := os.Lstat(path); exists == nil {
			return fmt.Errorf("%s exists: move it to another name first", path)
		}
		err = os.Rename(temp, path)
	}
	return errors.Join(err, syncDirectory(path))
}

// syncDirectory makes the name of a file durable. Windows cannot sync a directory.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// compact replaces a database file by one without unused pages, and returns the
// sizes of both. It holds the lock of the old file until the new one has its name.
func compact(ctx context.Context, flag, path string) (before, after int64, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", flag, err)
	}
	store, err := openExistingFile(ctx, flag, path, lockOnce())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if before, after, err = compactStore(ctx, store, path); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", flag, err)
	}
	return before, after, nil
}

// compactStore checks the store first: the engine trusts the pages that it
// compacts.
func compactStore(ctx context.Context, store *bolt.Store, path string) (before, after int64, err error) {
	if err := store.Check(ctx); err != nil {
		return 0, 0, err
	}
	old, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	temp, err := writeCompacted(ctx, store, path)
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(temp)
	if err := verifyCompacted(ctx, temp, store); err != nil {
		return 0, 0, err
	}
	compacted, err := os.Stat(temp)
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(copyOwner(temp, old), ctx.Err()); err != nil {
		return 0, 0, err
	}
	return old.Size(), compacted.Size(), errors.Join(os.Rename(temp, path), syncDirectory(path))
}

// writeCompacted compacts a copy of the store, because the engine cannot open a
// file that is locked. Unlike a copy of the relayers, this keeps the counters that
// prevent the reuse of revisions.
func writeCompacted(ctx context.Context, store *bolt.Store, path string) (name string, err error) {
	snapshot, err := writeTemp(ctx, store, path)
	if err != nil {
		return "", err
	}
	defer os.Remove(snapshot)
	temp, err := createTemp(path)
	if err != nil {
		return "", err
	}
	err = temp.Close()
	if err == nil {
		err = compactPages(temp.Name(), snapshot)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

// compactPages limits the memory of a transaction.
func compactPages(to, from string) (err error) {
	const transactionBytes = 16 << 20
	source, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	options := &bbolt.Options{NoSync: true, PageSize: source.Info().PageSize, FreelistType: bbolt.FreelistMapType}
	destination, err := bbolt.Open(to, 0o600, options)
	if err != nil {
		return err
	}
	err = bbolt.Compact(destination, source, transactionBytes)
	return errors.Join(err, destination.Sync(), destination.Close())
}

// verifyCompacted compares the new file with the store.
func verifyCompacted(ctx context.Context, temp string, store *bolt.Store) (err error) {
	compacted, err := bolt.Open(ctx, temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, compacted.Close()) }()
	if err := compacted.Check(ctx); err != nil {
		return err
	}
	_, want, err := store.List(ctx, 0, 0)
	if err != nil {
		return err
	}
	if _, got, err := compacted.List(ctx, 0, 0); err != nil || got != want {
		return errors.Join(err, fmt.Errorf("the compacted file has %d relayers, and the old one %d", got, want))
	}
	// All relayers are there, so that the copy only compares them.
	return transfer.Copy(ctx, compacted, store)
}
