package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// fileCopy is a verified copy of a database file to a new file.
type fileCopy struct {
	sourceFlag, source           string
	destinationFlag, destination string
	ofPostgres                   string // what does the same for PostgreSQL
}

// run returns the number of relayers copied. The lock of the source is held until
// the end.
func (c fileCopy) run(ctx context.Context) (total int, err error) {
	if err := cmp.Or(checkDatabaseFile(c.sourceFlag, c.source, c.ofPostgres), checkDatabaseFile(c.destinationFlag, c.destination, c.ofPostgres)); err != nil {
		return 0, err
	}
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
	if err := backUpTo(ctx, source, c.destination); err != nil {
		return 0, fmt.Errorf("%s: %w", c.destinationFlag, err)
	}
	all, err := source.List(ctx, relayer.StoreQuery{})
	return all.Total, err
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

// backUpTo writes a new file at path.
func backUpTo(ctx context.Context, source *bolt.Store, path string) error {
	err := source.Backup(ctx, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: move it to another name first", path)
	}
	return err
}
