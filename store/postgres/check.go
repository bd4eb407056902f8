package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
)

var _ transfer.Checker = (*Store)(nil)

// contradictions are the inconsistencies that Check looks for. Each statement counts
// one kind of them.
var contradictions = []struct{ what, sql string }{
	{"missing or additional rows of state or pruning", `
		SELECT (SELECT abs(count(*) - 1) FROM $schema.state) + (SELECT abs(count(*) - 1) FROM $schema.pruning)`},
	{"totals that differ from the number of relayers", `
		SELECT count(*) FROM $schema.state WHERE total <> (SELECT count(*) FROM $schema.relayers)`},
	{"postings that differ from the terms of relayers", `
		WITH real AS (
			SELECT term, sequence >> 9 AS chunk, bit_or(` + bitAt + `) AS bits
			FROM $schema.relayers CROSS JOIN unnest(array_append(terms, '')) AS term GROUP BY 1, 2
		)
		SELECT count(*) FROM real FULL JOIN $schema.postings AS stored USING (term, chunk)
		WHERE real.bits IS DISTINCT FROM stored.bits`},
	{"relayers with an impossible ID, claim, sequence number or revision", `
		SELECT count(*) FROM $schema.relayers, $schema.state
		WHERE octet_length(id) NOT BETWEEN 1 AND 64 OR octet_length(claim) NOT BETWEEN 1 AND 128
		OR sequence NOT BETWEEN 1 AND last_sequence OR revision NOT BETWEEN 1 AND last_revision`},
	// The changes of the feed are numbered without holes, except that an import may skip numbers,
	// and those of a relayer are counted without holes.
	{"holes in the changes", `
		SELECT count(*) FROM (
			SELECT number, kind, lag(number, 1, pruned) OVER (ORDER BY number) AS before
			FROM $schema.changes, $schema.pruning WHERE number > pruned
		) AS change WHERE kind <> 'imported' AND number <> before + 1`},
	{"holes in the changes of a relayer", `
		SELECT count(*) FROM (
			SELECT kind, nth, lag(nth, 1, nth - 1) OVER (PARTITION BY id ORDER BY number) AS before FROM $schema.changes
		) AS change WHERE kind <> 'imported' AND nth <> before + 1`},
	{"relayers that count their changes wrongly", `
		SELECT count(*) FROM $schema.relayers AS r JOIN (
			SELECT id, max(nth) AS nth FROM $schema.changes GROUP BY id) AS last USING (id) WHERE r.nth <> last.nth`},
	{"missing last changes", `
		SELECT count(*) FROM $schema.state, $schema.pruning
		WHERE last_revision > greatest(history_pruned, (SELECT max(number) FROM $schema.changes))`},
	{"changes that should be pruned, or above the last revision", `
		SELECT count(*) FROM $schema.changes, $schema.pruning, $schema.state WHERE number <= history_pruned OR number > last_revision`},
	{"impossible counters of pruning", `
		SELECT count(*) FROM $schema.state, $schema.pruning WHERE pruned > last_revision OR greatest(history_pruned, displaced) > pruned
		OR least(last_sequence, last_revision, pruned, history_pruned, displaced, feed_age, history_age, history_changes) < 0`},
	{"positions that differ from the last change", `
		SELECT count(*) FROM $schema.state JOIN $schema.changes ON number = last_revision WHERE last_changed_at <> changed_at`},
	// An imported relayer can have the revision of an older change of its ID, of this store or of
	// another one. Only its last change is compared, and only if it has its sequence number.
	{"relayers that differ from their last change", `
		SELECT count(*) FROM $schema.relayers AS r JOIN $schema.changes AS c ON (c.number, c.id, c.sequence, c.nth) = (r.revision, r.id, r.sequence, r.nth)
		WHERE c.kind <> 'deleted' AND ((r.terms, r.text, r.note, r.document) IS DISTINCT FROM (c.terms, c.text, c.note, c.document)
			OR r.claim IS DISTINCT FROM c.claim)`},
}

// Check reads all tables in one snapshot and returns [relayer.ErrCorrupt] if they contradict each
// other. Reads and writes continue. Neither [WithTimeout] nor statement_timeout applies once it
// is connected: a million relayers take seconds.
func (s *Store) Check(ctx context.Context) error {
	if s.ended.Err() != nil {
		return errClosed
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	err := s.findContradiction(reading)
	if err == nil || errors.Is(err, relayer.ErrCorrupt) {
		return err
	}
	return cmp.Or(s.stopped(ctx), failed(err))
}

func (s *Store) findContradiction(ctx context.Context) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) error {
		// To compile a statement takes longer than most of them.
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', '0', true), set_config('jit', 'off', true)`); err != nil {
			return err
		}
		found, err := readFormat(ctx, tx.Conn(), s.opts.schema)
		if errors.Is(err, relayer.ErrUnknownFormat) { // which it was not when the Store was opened
			return s.corrupt("the table state has no version")
		}
		if err == nil {
			err = found.permits(schemaVersion)
		}
		if err != nil {
			return err
		}
		for _, c := range contradictions {
			var count int
			if err := tx.QueryRow(ctx, s.in(c.sql)).Scan(&count); err != nil {
				return err
			}
			if count > 0 {
				return s.corrupt(fmt.Sprintf("%d %s", count, c.what))
			}
		}
		return nil
	})
}

func (s *Store) corrupt(what string) error {
	return fmt.Errorf("postgres: schema %s: %w: %s", s.opts.schema, relayer.ErrCorrupt, what)
}

// needed are the privileges without which writes or the pruning fail. Row-level security drops rows silently.
const needed = `
	SELECT string_agg(DISTINCT CASE WHEN isHidden THEN 'an exemption from row-level security' ELSE privilege END || ' on ' || name, ', ')
	FROM (VALUES ('SELECT', 'pruning'), ('UPDATE', 'pruning'), ('SELECT', 'relayers'), ('SELECT', 'changes'), ('SELECT', 'postings'), ('INSERT', 'relayers'), ('UPDATE', 'relayers'), ('DELETE', 'relayers'), ('INSERT', 'changes'), ('DELETE', 'changes'), ('INSERT', 'postings'),
		('UPDATE', 'postings'), ('DELETE', 'postings'), ('UPDATE', 'state')) AS needed (privilege, name),
		LATERAL row_security_active(('$schema.' || name)::regclass) AS isHidden
	WHERE isHidden OR NOT has_table_privilege(('$schema.' || name)::regclass, privilege)`

// Ready returns nil if the store can read and its role may write, and otherwise the reason.
func (s *Store) Ready(ctx context.Context) error {
	if _, err := s.List(ctx, relayer.StoreQuery{}); err != nil {
		return err
	}
	var missing *string
	err := s.read(ctx, s.in(needed), nil, func(rows pgx.Rows) (err error) {
		missing, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[*string])
		return err
	})
	if err == nil && missing != nil {
		return fmt.Errorf("postgres: schema %s: the role lacks %s", s.opts.schema, *missing)
	}
	return err
}
