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

	"github.com/jackc/pgx/v5"

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
)

const (
	// historyChanges is how many changes of each relayer a file retains.
	historyChanges = 1000

	// defaultHistory is how long a store retains a change.
	defaultHistory = 90 * 24 * time.Hour

	// everything is the retention of commands: only a server deletes old changes.
	everything time.Duration = math.MaxInt64
)

// openStore opens memory, a PostgreSQL database, or a file, which it creates if it
// is missing. Errors begin with the name of the flag.
func openStore(ctx context.Context, flag, name string, history time.Duration, options ...bolt.Option) (store relayer.Store, closeStore func() error, err error) {
	switch {
	case name == inMemory:
		return memory.New(), func() error { return nil }, nil
	case isPostgres(name):
		return openPostgres(ctx, flag, name)
	}
	if err := checkParent(flag, name); err != nil {
		return nil, nil, err
	}
	file, err := openFile(ctx, flag, name, history, options...)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

func checkParent(flag, path string) error {
	directory := filepath.Dir(path)
	if _, err := os.Stat(directory); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the directory %s does not exist: create it first", flag, directory)
	}
	return nil
}

func openExisting(ctx context.Context, flag, name string, options ...bolt.Option) (store relayer.Store, closeStore func() error, err error) {
	if isPostgres(name) {
		return openPostgres(ctx, flag, name, postgres.WithoutSetup())
	}
	file, err := openExistingFile(ctx, flag, name, options...)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

func openExistingFile(ctx context.Context, flag, path string, options ...bolt.Option) (*bolt.Store, error) {
	if err := checkExists(flag, path); err != nil {
		return nil, err
	}
	return openFile(ctx, flag, path, everything, options...)
}

// checkExists checks that there is a database file.
func checkExists(flag, path string) error {
	if err := checkParent(flag, path); err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: there is no file %s", flag, path)
	} else if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

func openFile(ctx context.Context, flag, path string, history time.Duration, options ...bolt.Option) (*bolt.Store, error) {
	changes := historyChanges
	if history == everything {
		changes = math.MaxInt
	}
	file, err := bolt.Open(ctx, path, append(options, bolt.WithHistory(changes, history))...)
	if err != nil {
		return nil, fileError(flag, path, err)
	}
	return file, nil
}

func fileError(flag, path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, bolt.ErrLocked) {
		return fmt.Errorf("%s: %s: %w: stop the server that has it open", flag, path, bolt.ErrLocked)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// openPostgres relies on the store: none of its errors contains the password.
func openPostgres(ctx context.Context, flag, url string, options ...postgres.Option) (relayer.Store, func() error, error) {
	database, err := postgres.Open(ctx, url, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", flag, err)
	}
	return database, database.Close, nil
}

// warnIfReadable logs a warning if other users can read a file or directory with secrets. A
// database contains full RPC URLs.
func warnIfReadable(logger *slog.Logger, what, path string) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return
	}
	advice := "chmod 600"
	if info.IsDir() {
		advice = "chmod 700"
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		logger.Warn("other users can read the "+what+": run "+advice, "path", path, "mode", mode.String())
	}
}

// checkNotWritable returns an error if every user can write a file or directory.
func checkNotWritable(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 {
		return fmt.Errorf("other users can write %s, which has the mode %#o: run chmod o-w", path, mode)
	}
	return nil
}

func isPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// isFilePath rejects every path that could be a malformed connection string, so
// that errors may contain the path.
func isFilePath(path string) bool {
	return !strings.ContainsAny(path[len(filepath.VolumeName(path)):], "@=:")
}

func checkDatabase(flag, name string) error {
	if name == "postgres" || name == "postgresql" {
		return fmt.Errorf("%s needs the URL of a PostgreSQL database, such as postgres://user@host/database (for a file of this name, write ./%s)", flag, name)
	}
	if !isPostgres(name) && !isFilePath(name) {
		return fmt.Errorf("%s must be a file, or a URL that begins with postgres://: %s", flag, filePathRule)
	}
	return nil
}

// checkDatabaseFile checks a database that must be a file. The error names what does the same
// for PostgreSQL.
func checkDatabaseFile(flag, name, ofPostgres string) error {
	if isPostgres(name) {
		return fmt.Errorf("%s must be a file: use %s for PostgreSQL", flag, ofPostgres)
	}
	return checkFile(flag, name)
}

// inputError describes why a file of a flag cannot be read, and what to do.
func inputError(flag, path, ifMissing string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no file %s: %s", flag, path, ifMissing)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: this user cannot read %s: change its owner or mode", flag, path)
	case isDirectory(path):
		return fmt.Errorf("%s: %s is a directory: name a file", flag, path)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func checkFile(flag, name string) error {
	if name == inMemory || !isFilePath(name) {
		return fmt.Errorf("%s must be a file: %s", flag, filePathRule)
	}
	return nil
}

// checkDurable checks a database that must outlive the process.
func checkDurable(flag, name string) error {
	if name == inMemory {
		return fmt.Errorf("%s must be a file or a postgres:// URL: memory stores nothing", flag)
	}
	return checkDatabase(flag, name)
}

func checkSource(flag, name, destinationFlag, destination string) error {
	if err := checkDurable(flag, name); err != nil {
		return err
	}
	if isSame(name, destination) {
		return fmt.Errorf("%s is the same as %s", flag, destinationFlag)
	}
	return nil
}

// isSame reports whether two names are known to mean the same database.
func isSame(a, b string) bool {
	if isPostgres(a) && isPostgres(b) {
		return isSameDatabase(a, b)
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func isSameDatabase(a, b string) bool {
	one, err := pgx.ParseConfig(a)
	if err != nil {
		return false
	}
	other, err := pgx.ParseConfig(b)
	return err == nil && one.Host == other.Host && one.Port == other.Port && one.Database == other.Database
}
