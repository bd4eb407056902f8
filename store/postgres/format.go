package postgres

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
)

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
	if failed != nil || found.version <= schemaVersion {
		return err
	}
	return fmt.Errorf("%w: it is of version %d, this package knows version %d, and the server says: %v",
		relayer.ErrNewerFormat, found.version, schemaVersion, withoutDriver(err))
}

// format is the version of the schema and the minimum version of its writers. A later
// version of this package may change the schema under the write lock while instances of
// this version run: they go on reading through the functions of the schema, and writing
// and pruning if minWriter permits it. The tables state (version, min_writer) and
// pruning keep their names, because all versions look there.
type format struct{ version, minWriter int }

func (f format) permits(version int) error {
	if f.minWriter <= version {
		return nil
	}
	return fmt.Errorf("%w: it is of version %d and needs writers of version %d, and this package writes version %d",
		relayer.ErrNewerFormat, f.version, f.minWriter, version)
}
