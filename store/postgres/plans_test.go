//go:build unix

package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestPlans_SmallTables has the server plan while the tables are small, and checks that
// it still uses the indexes when they are large.
func TestPlans_SmallTables(t *testing.T) {
	t.Parallel()
	name := schemaName()
	pool := newPoolWith(t, server.ConnString(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	store := openOn(t, pool, postgres.WithSchema(name))
	last := create(t, store, record("small"))
	execute(t, pool, `ANALYZE `+name+`.relayers, `+name+`.changes, `+name+`.postings`)
	changes := watch(t, store)
	use := func() {
		last = update(t, store, last)
		changes.want(t, relayer.ChangeUpdated, last)
		get(t, store, last.ID)
		for _, query := range []relayer.StoreQuery{{Limit: 10}, {Terms: [][]string{{"common"}}, IDs: []string{last.ID}, Limit: 10}} {
			must(t, errorOf(store.List(t.Context(), query)))
		}
	}
	for range 10 {
		use()
	}
	for i := range 5 {
		records := make([]relayer.Record, 1000)
		for j := range records {
			records[j] = record(numbered(1000*i + j))
			records[j].Revision = 1
		}
		must(t, store.Import(t.Context(), records))
		changes.wantGap(t)
	}
	execute(t, pool, `INSERT INTO `+name+`.changes (number, kind, changed_at, sequence, id, nth, terms, text, note, document) SELECT -n, 'created', 0, 1, '', 0, '{}', '', '', '' FROM generate_series(1, 5000) AS n`)

	// A backend reports its statistics when asked to, or after some time.
	read := func() int {
		execute(t, pool, `SELECT pg_stat_force_next_flush()`)
		return queryOne[int](t, pool, `SELECT sum(seq_tup_read)::int FROM pg_stat_user_tables
			WHERE schemaname = $1 AND relname IN ('relayers', 'changes', 'postings')`, name)
	}
	before := read()
	for range 10 {
		use()
	}
	if got := read() - before; got > 0 {
		t.Errorf("%d rows were read without an index", got)
	}
}

// TestPlans_OldSnapshot writes while a long transaction keeps the dead versions of
// the counters. A write must read the current version without reading the others.
func TestPlans_OldSnapshot(t *testing.T) {
	t.Parallel()
	const writes = 200
	admin, schema := newAdmin(t)
	// One connection, so that the test can ask for its statistics.
	pool := newPoolWith(t, server.ConnString(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	store := openOn(t, pool, postgres.WithSchema(schema))
	rec := create(t, store, record("one"))
	holdSnapshot(t, admin, schema)
	for range writes {
		rec = update(t, store, rec)
	}
	execute(t, pool, "SELECT pg_stat_force_next_flush()")
	// Each write reads the counters once and raises them once.
	read := queryOne[int](t, pool, `SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1 AND relname = 'state'`, schema)
	if read < 2*writes || read > 4*writes {
		t.Errorf("%d entries of the index of state were read for %d writes", read, writes)
	}
}
