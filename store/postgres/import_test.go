package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestImportReadsNoMoreThanItAdds: the cost of a page must not grow with what is
// there already. The first pages are small, as those of a copy are, so that the
// server plans for little.
func TestImportReadsNoMoreThanItAdds(t *testing.T) {
	schema := fmt.Sprintf("test_%d", schemas.Add(1))
	store := open(t, postgres.WithSchema(schema))
	const most = 10_000
	imported := 0
	for size := 8; imported < most; size = min(2*size, 250) {
		var page []relayer.Record
		for range size {
			imported++
			page = append(page, relayer.Record{
				ID: fmt.Sprintf("id-%d", imported), Claim: fmt.Sprintf("claim-%d", imported), Revision: uint64(imported),
			})
		}
		if err := store.Import(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if read := rowsRead(t, schema, imported); read > 2*imported {
		t.Errorf("%d rows read to add %d", read, imported)
	}
}

// rowsRead is how many relayers have been read by way of an index. Sessions
// report what they did when they end, which takes a moment.
func rowsRead(t *testing.T, schema string, written int) (read int) {
	t.Helper()
	pool := newPool(t, server.ConnString())
	deadline := time.Now().Add(30 * time.Second)
	for reported := 0; reported < written; time.Sleep(10 * time.Millisecond) {
		err := pool.QueryRow(t.Context(), `
			SELECT n_tup_ins, coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables
			WHERE schemaname = $1 AND relname = 'relayers'`, schema).Scan(&reported, &read)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d rows reported, error %v", reported, err)
		}
	}
	return read
}
