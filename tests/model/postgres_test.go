//go:build unix

package model

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestTwoStoresOnPostgreSQLAgreeWithTheModel has two stores share a schema, as
// two instances of a host do: what one writes the other has to go on from.
func TestTwoStoresOnPostgreSQLAgreeWithTheModel(t *testing.T) {
	database := startDatabase(t)
	rapid.Check(t, func(t *rapid.T) {
		checkSubjects(t, []*subject{database.newSubject(t)})
	})
}

// database is that of a server, in which each subject has a schema of its own.
type database struct {
	connString string
	pool       *pgxpool.Pool
	schemas    int
}

// startDatabase skips the test where there is no PostgreSQL, or fails it where
// CI is set.
func startDatabase(t *testing.T) *database {
	t.Helper()
	if err := pgserver.Available(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	connString := pgserver.Start(t).ConnString()
	pool, err := pgxpool.New(t.Context(), connString)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &database{connString: connString, pool: pool}
}

func (d *database) newSubject(t *rapid.T) *subject {
	d.schemas++
	schema := fmt.Sprintf("model_%d", d.schemas)
	t.Cleanup(func() {
		if _, err := d.pool.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	s := &subject{name: "PostgreSQL", open: func(t *rapid.T) relayer.Store {
		store, err := postgres.Open(t.Context(), d.connString, postgres.WithSchema(schema))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}}
	s.start(t, 2)
	return s
}
