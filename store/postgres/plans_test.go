//go:build unix

package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestPlansOfSmallTables has the server make its plans while the tables are
// small, and asks whether they still go by the indexes when there is much.
func TestPlansOfSmallTables(t *testing.T) {
	t.Parallel()
	name := schemaName()
	pool := newPoolWith(t, server.ConnString(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	store := openOn(t, pool, postgres.WithSchema(name))
	last := create(t, store, record("small"))
	execute(t, pool, `ANALYZE `+name+`.relayers, `+name+`.changes, `+name+`.counts`)
	changes := watch(t, store)
	use := func() {
		last = update(t, store, last)
		changes.want(t, relayer.Updated, last)
		get(t, store, last.ID)
		if _, _, err := store.List(t.Context(), 0, 10); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		use()
	}
	for i := range 20 {
		records := make([]relayer.Record, 1000)
		for j := range records {
			records[j] = record(numbered(1000*i + j))
			records[j].Revision = 1
		}
		if err := store.Import(t.Context(), records); err != nil {
			t.Fatal(err)
		}
		changes.wantMissed(t)
	}
	execute(t, pool, `INSERT INTO `+name+`.changes SELECT -n, 'created', 0, '', 1, NULL, '', '' FROM generate_series(1, 20000) AS n`)

	// What a backend has read is told when it is asked to, and else after a while.
	read := func() int {
		execute(t, pool, `SELECT pg_stat_force_next_flush()`)
		return queryOne[int](t, pool, `SELECT sum(seq_tup_read)::int FROM pg_stat_user_tables
			WHERE schemaname = $1 AND relname IN ('relayers', 'changes', 'counts')`, name)
	}
	before := read()
	for range 10 {
		use()
	}
	if got := read() - before; got > 0 {
		t.Errorf("%d rows were read that no index led to", got)
	}
}
