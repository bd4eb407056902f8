package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// server is the one that most tests share, each in a schema of its own.
var server *pgserver.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = pgserver.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var schemas atomic.Int64

// newSchema is a name that no other test has.
func newSchema() postgres.Option {
	return postgres.WithSchema(fmt.Sprintf("test_%d", schemas.Add(1)))
}

func open(t testing.TB, options ...postgres.Option) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), server.ConnString(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// newPool is a pool as a host has one.
func newPool(t testing.TB, connString string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), connString)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
