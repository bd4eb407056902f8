//go:build unix

package linearizability

import (
	"os"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestPostgreSQL spreads the clients over two stores that share a schema, as the
// instances of a host do.
func TestPostgreSQL(t *testing.T) {
	checkHistories(t, openTwo(t)...)
}

// openTwo opens two stores on the same relayers. It skips the test where there is
// no PostgreSQL, or fails it where CI is set.
func openTwo(t *testing.T) []relayer.Store {
	t.Helper()
	if err := pgserver.Available(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	server := pgserver.Start(t)
	var stores []relayer.Store
	for range 2 {
		store, err := postgres.Open(t.Context(), server.ConnString())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		stores = append(stores, store)
	}
	return stores
}
