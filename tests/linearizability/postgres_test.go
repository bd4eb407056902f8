//go:build unix

package linearizability

import (
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// TestHistories_Postgres spreads the clients over two stores that share a schema,
// as the instances of a host do.
func TestHistories_Postgres(t *testing.T) {
	checkHistories(t, openTwo(t)...)
}

// openTwo opens two stores on one schema.
func openTwo(t *testing.T) []relayer.Store {
	t.Helper()
	connString := pgserver.Start(t).ConnString()
	return []relayer.Store{pgtest.Open(t, connString), pgtest.Open(t, connString)}
}
