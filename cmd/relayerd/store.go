package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
)

// inMemory is the name of a store that keeps nothing.
const inMemory = "memory"

// openStore opens the store of a name: memory, the URL of a PostgreSQL database,
// or a file, which is made where there is none.
func openStore(ctx context.Context, name string) (store relayer.Store, closeStore func() error, err error) {
	switch {
	case name == inMemory:
		return memory.New(), func() error { return nil }, nil
	case isPostgres(name):
		return openPostgres(ctx, name)
	}
	return openFile(ctx, name)
}

// openSource opens a store to copy from, which must be there already.
func openSource(ctx context.Context, name string) (source relayer.Store, closeSource func() error, err error) {
	if isPostgres(name) {
		return openPostgres(ctx, name, postgres.WithoutSetup())
	}
	if _, err := os.Stat(name); err != nil {
		return nil, nil, err
	}
	return openFile(ctx, name)
}

func openFile(ctx context.Context, name string) (relayer.Store, func() error, error) {
	file, err := bolt.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

// warnOfShared logs a warning if other users can read the database file: it
// holds full RPC URLs.
func warnOfShared(logger *slog.Logger, path string) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		logger.Warn("other users can read the database file: run chmod 600", "path", path, "mode", mode.String())
	}
}

func openPostgres(ctx context.Context, name string, options ...postgres.Option) (relayer.Store, func() error, error) {
	database, err := postgres.Open(ctx, name, options...)
	if err != nil {
		return nil, nil, err
	}
	return database, database.Close, nil
}

func isPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// checkName keeps what is a connection string of any other kind from being taken
// for a file.
func checkName(name string) error {
	if !isPostgres(name) && connection.MatchString(name) {
		return errors.New("must be a file, or a URL that begins with postgres:// (the name of a file must have no @, no ://, and no setting such as host=)")
	}
	return nil
}

// checkSource checks what is to be copied from, and that it is not what is copied
// to.
func checkSource(name, destination string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if name == inMemory {
		return errors.New("must name what keeps relayers, which memory does not")
	}
	if isSame(name, destination) {
		return errors.New("is the same as -db")
	}
	return nil
}

// isSame tells whether two names are known to mean one store.
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
