package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

var _ relayer.CheckStore = (*Store)(nil)

// contradictions are the inconsistencies that Check looks for. Each statement counts
// one kind of them.
var contradictions = []struct{ what, sql string }{
	{"counts that differ from the number of relayers", `
		WITH real AS (
			SELECT level, position >> (7 * level) AS node, count(*) AS live
			FROM $schema.relayers CROSS JOIN generate_series(1, 3) AS level GROUP BY 1, 2
		)
		SELECT count(*) FROM real FULL JOIN $schema.counts AS stored USING (level, node)
		WHERE coalesce(real.live, 0) <> coalesce(stored.live, 0)`},
	{"missing or additional rows of state", `SELECT abs(count(*) - 1) FROM $schema.state`},
	{"relayers above the last position", `
		SELECT count(*) FROM $schema.relayers WHERE position > (SELECT last_position FROM $schema.state)`},
	{"revisions above the last revision", `
		SELECT count(*) FROM $schema.relayers WHERE revision > (SELECT last_revision FROM $schema.state)`},
	{"changes above the last revision", `
		SELECT count(*) FROM $schema.changes WHERE number > (SELECT last_revision FROM $schema.state)`},
	{"missing or additional rows of pruning", `SELECT abs(count(*) - 1) FROM $schema.pruning`},
	{"changes that should be pruned", `
		SELECT count(*) FROM $schema.changes WHERE number <= (SELECT pruned FROM $schema.pruning)`},
	{"pruned changes above the last revision", `
		SELECT count(*) FROM $schema.pruning WHERE pruned > (SELECT last_revision FROM $schema.state)`},
}

// Check reads all tables in one snapshot and returns [relayer.ErrCorrupt] if they
// contradict each other. Reads and writes continue. [WithTimeout] does not apply: a
// million relayers take seconds.
func (s *Store) Check(ctx context.Context) error {
	if s.ended.Err() != nil {
		return errClosed
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	err := s.findContradiction(reading)
	switch {
	case err == nil || errors.Is(err, relayer.ErrCorrupt):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case s.ended.Err() != nil:
		return errClosed
	}
	return unavailable(s.explain(ctx, err))
}

func (s *Store) findContradiction(ctx context.Context) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) error {
		found, err := readFormat(ctx, tx, s.opts.schema)
		if err == nil {
			err = found.permits(s.opts.version())
		}
		if err != nil {
			return err
		}
		for _, c := range contradictions {
			var count int
			if err := tx.QueryRow(ctx, inSchema(s.opts.schema, c.sql)).Scan(&count); err != nil {
				return err
			}
			if count > 0 {
				return fmt.Errorf("postgres: schema %s: %w: %d %s", s.opts.schema, relayer.ErrCorrupt, count, c.what)
			}
		}
		return nil
	})
}
