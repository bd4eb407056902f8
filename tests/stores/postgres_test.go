//go:build unix

package stores

import (
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

func TestRegistry_SameOutcomesOverPostgres(t *testing.T) {
	server, schemas := pgserver.Start(t), 0
	open := func() *relayer.Manager {
		schemas++
		return newManager(t, pgtest.Open(t, server.ConnString(), postgres.WithSchema(fmt.Sprint("registry_", schemas))))
	}
	for seed := range (*scripts + 3) / 4 {
		err := compare(t.Context(), []*session{
			newSession("Manager over memory", newManager(t, memory.New())),
			newSession("Manager over PostgreSQL", open()),
			newSession("client of PostgreSQL", newClient(t, open(), relayer.Selector{})),
		}, seed, make(map[string]int))
		must(t, err)
	}
}

// TestHistories_Postgres spreads the callers over two stores that share a schema,
// as the instances of a host do.
func TestHistories_Postgres(t *testing.T) {
	connString := pgserver.Start(t).ConnString()
	checkHistories(t, pgtest.Open(t, connString), pgtest.Open(t, connString))
}
