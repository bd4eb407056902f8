//go:build unix

package model

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestModel_TwoPostgresStores runs two stores on one schema, as two instances of a
// host do. Each must see what the other writes.
func TestModel_TwoPostgresStores(t *testing.T) {
	server := startServer(t)
	rapid.Check(t, func(t *rapid.T) {
		checkSubjects(t, []*subject{server.newSubject(t)})
	})
}

// server is a server on which each subject has its own schema.
type server struct {
	connString string
	pool       *pgxpool.Pool
	schemas    int
}

func startServer(t *testing.T) *server {
	t.Helper()
	connString := pgserver.Start(t).ConnString()
	pool, err := pgxpool.New(t.Context(), connString)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &server{connString: connString, pool: pool}
}

func (s *server) newSubject(t *rapid.T) *subject {
	s.schemas++
	schema := fmt.Sprintf("model_%d", s.schemas)
	t.Cleanup(func() {
		if _, err := s.pool.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	tested := &subject{name: "PostgreSQL", open: func(t *rapid.T) relayer.Store {
		store, err := postgres.Open(t.Context(), s.connString, postgres.WithSchema(schema))
		if err != nil {
			t.Fatal(err)
		}
		return store
	}}
	tested.start(t, 2)
	return tested
}
