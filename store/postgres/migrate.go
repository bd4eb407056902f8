package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
)

// migration leads from one version of the schema to the next. Its statements run
// in one transaction that holds the write lock and keeps pruning out.
//
// minWriter is the oldest version of this package that may still write and prune
// afterwards. It is the version before for an additive change, and the new version
// if older statements would write wrong data. Older instances go on reading through
// the functions of the schema: a migration replaces those that still mean the same
// and drops the others. The tables state (version, min_writer_version) and pruning
// keep their names, because all versions look there.
type migration struct {
	minWriter int
	sql       string
}

// migrations lead from schemaVersion to the version of this package, in order.
var migrations []migration

// version is the version of the schema that the Store reads and writes.
func (o options) version() int { return schemaVersion + len(o.migrations) }

// migrate upgrades the schema step by step and returns its format. If several
// instances do so at once, each step is made by one of them.
func migrate(ctx context.Context, conn *pgxpool.Conn, opts options) (format, error) {
	for {
		found, err := migrateOnce(ctx, conn, opts)
		if err != nil || found.version >= opts.version() {
			return found, err
		}
	}
}

// migrateOnce makes the next step, if there is one, and returns the format that
// it found.
func migrateOnce(ctx context.Context, conn *pgxpool.Conn, opts options) (found format, err error) {
	err = transact(ctx, conn, opts, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, inSchema(opts.schema, `LOCK TABLE $schema.state, $schema.pruning IN EXCLUSIVE MODE`)); err != nil {
			return err
		}
		if found, err = readFormat(ctx, tx, opts.schema); err != nil || found.version >= opts.version() {
			return err
		}
		// However long it takes: the context can end it.
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		step := opts.migrations[found.version-schemaVersion]
		if err := executeAll(ctx, tx, opts.schema, step.sql); err != nil {
			return fmt.Errorf("upgrade from version %d: %w", found.version, err)
		}
		_, err := tx.Exec(ctx, inSchema(opts.schema, `
			UPDATE $schema.state SET version = version + 1, min_writer_version = greatest(min_writer_version, $1::integer)`), step.minWriter)
		return err
	})
	return found, err
}

// explain returns the error, or [relayer.ErrNewerFormat] if a statement fails
// because a newer version has changed what it refers to.
func (s *Store) explain(ctx context.Context, err error) error {
	if !isSchemaError(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	conn, failed := s.acquire(ctx)
	if failed != nil {
		return err
	}
	defer conn.Release()
	found, failed := readFormat(ctx, conn, s.opts.schema)
	if failed != nil || found.version <= s.opts.version() {
		return err
	}
	return fmt.Errorf("%w: it is of version %d, this package knows version %d, and the server says: %v",
		relayer.ErrNewerFormat, found.version, s.opts.version(), withoutDriver(err))
}

// format is the version of the schema and the minimum version of its writers.
type format struct{ version, minWriter int }

// permits returns [relayer.ErrNewerFormat] if the version may not write.
func (f format) permits(version int) error {
	if f.minWriter <= version {
		return nil
	}
	return fmt.Errorf("%w: it is of version %d and needs writers of version %d, and this package writes version %d",
		relayer.ErrNewerFormat, f.version, f.minWriter, version)
}
