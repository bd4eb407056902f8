package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
)

const (
	defaultDatabase = "relayers.db"

	// inMemory names a store that is lost when the process ends.
	inMemory = "memory"

	filePathRule = "a path must not contain @, = or :"

	// historyChanges is how many changes of each relayer a file retains.
	historyChanges = 1000

	// defaultHistory is how long a store retains a change.
	defaultHistory = 90 * 24 * time.Hour
)

// database is what a flag names: a file, the URL of a database in PostgreSQL, or memory.
type database struct{ flag, name string }

// openedStore is a [bolt.Store], a [postgres.Store] or a memoryStore.
type openedStore interface {
	relayer.Store
	Close() error
}

type memoryStore struct{ *memory.Store }

func (memoryStore) Close() error { return nil }

// forServer opens a database, and creates it if it is missing.
func (d database) forServer(ctx context.Context, history time.Duration, isHistorySet bool, logger *slog.Logger) (openedStore, error) {
	if d.name == inMemory {
		return memoryStore{memory.New()}, nil
	}
	options := []postgres.Option{postgres.WithLogger(logger)}
	if isHistorySet {
		options = append(options, postgres.WithHistory(-1, history))
	}
	return d.openWith(ctx, options, bolt.WithLogger(logger), bolt.WithHistory(historyChanges, history))
}

// forCommand opens a database that no server has open, and creates it if it is missing. Only a
// server deletes changes of the history.
func (d database) forCommand(ctx context.Context, options ...postgres.Option) (openedStore, error) {
	return d.openWith(ctx, options, bolt.WithLockTimeout(0), bolt.WithHistory(math.MaxInt, math.MaxInt64))
}

// open is forCommand for an existing database.
func (d database) open(ctx context.Context) (openedStore, error) {
	if err := d.checkDurable(""); err != nil {
		return nil, err
	}
	if !isPostgres(d.name) {
		if _, err := os.Stat(d.name); err != nil {
			return nil, fileError(d.flag, err, newFileHint)
		}
	}
	return d.forCommand(ctx, postgres.WithoutSetup())
}

// openWith relies on the stores: none of their errors contains a password.
func (d database) openWith(ctx context.Context, ofServer []postgres.Option, ofFile ...bolt.Option) (openedStore, error) {
	if isPostgres(d.name) {
		store, err := postgres.Open(ctx, d.name, ofServer...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.flag, err)
		}
		return store, nil
	}
	file, err := bolt.Open(ctx, d.name, ofFile...)
	if err != nil {
		return nil, fileError(d.flag, err, newFileHint)
	}
	return file, nil
}

const newFileHint = "name an existing file, and for a new one an existing directory"

// fileError adds to an error about a file what to do.
func fileError(flag string, err error, ifMissing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolt.ErrLocked):
		return fmt.Errorf("%s: %w: stop the server that has it open", flag, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: move it to another name first", flag, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: %s", flag, err, ifMissing)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// check returns an error for what may be a malformed connection string, without it.
func (d database) check() error {
	if !isPostgres(d.name) && !isFilePath(d.name) {
		return fmt.Errorf("%s must be a file, or a URL that begins with postgres://: %s", d.flag, filePathRule)
	}
	return nil
}

// checkDurable checks a database that must outlive the process. If ofPostgres is not empty, it must
// be a file, and ofPostgres does the same for PostgreSQL.
func (d database) checkDurable(ofPostgres string) error {
	switch {
	case d.name == inMemory:
		return fmt.Errorf("%s must be a file or a postgres:// URL: memory stores nothing", d.flag)
	case ofPostgres != "" && isPostgres(d.name):
		return fmt.Errorf("%s must be a file: use %s for PostgreSQL", d.flag, ofPostgres)
	}
	return d.check()
}

func isPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// isFilePath rejects every path that could be a malformed connection string, so
// that errors may contain the path.
func isFilePath(path string) bool {
	return !strings.ContainsAny(path[len(filepath.VolumeName(path)):], "@=:")
}

func checkFile(flag, path string) error {
	if !isFilePath(path) {
		return fmt.Errorf("%s must be a file: %s", flag, filePathRule)
	}
	return nil
}

// readFile reads the file of a flag. If it is missing, the error says what to do.
func readFile(flag, path, ifMissing string) ([]byte, error) {
	if err := checkFile(flag, path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	return data, fileError(flag, err, ifMissing)
}

// warnIfReadable logs a warning if users outside of its group can read a file or directory with
// secrets. A database contains full RPC URLs.
func warnIfReadable(logger *slog.Logger, what, path string) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" {
		logger.Warn("other users can read the "+what+": run chmod o-rwx", "path", path, "mode", info.Mode().Perm().String())
	}
}

// checkNotWritable returns an error if every user can write a file or directory.
func checkNotWritable(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o002 == 0 || runtime.GOOS == "windows" {
		return err
	}
	return fmt.Errorf("other users can write %s, which has the mode %#o: run chmod o-w", path, info.Mode().Perm())
}
