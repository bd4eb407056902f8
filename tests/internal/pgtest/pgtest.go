//go:build unix

// Package pgtest opens stores on a PostgreSQL server of package pgserver, and waits
// for the sessions of processes that were killed.
package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// patience is far above any delay on a busy machine.
const patience = 2 * time.Minute

// Open opens a store until the test ends. Unless an option sets the timeout, it is long enough for a
// busy machine.
func Open(t testing.TB, connString string, options ...postgres.Option) *postgres.Store {
	t.Helper()
	options = append([]postgres.Option{postgres.WithTimeout(30 * time.Second)}, options...)
	var store *postgres.Store
	must(t, UntilAvailable(func() (err error) {
		store, err = postgres.Open(t.Context(), connString, options...)
		return err
	}))
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// UntilAvailable repeats a call that can exceed the short timeouts of a store on a busy
// machine.
func UntilAvailable(call func() error) error {
	deadline := time.Now().Add(patience)
	err := call()
	for errors.Is(err, relayer.ErrUnavailable) && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
		err = call()
	}
	return err
}

// Connect opens a connection until the test ends. A server that recovers after a fault
// refuses connections for a time.
func Connect(t testing.TB, connString string) *pgx.Conn {
	t.Helper()
	deadline := time.Now().Add(patience)
	conn, err := pgx.Connect(t.Context(), connString)
	for err != nil && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
		conn, err = pgx.Connect(t.Context(), connString)
	}
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// SessionName returns the parameter of a connection string that names its sessions.
func SessionName(name string) string { return "&application_name=" + name }

// AwaitSessionsEnd waits until the server has no session of the name. The sessions
// of a killed client first carry out the requests that they have received.
func AwaitSessionsEnd(t testing.TB, server *pgserver.Server, name string) {
	t.Helper()
	conn := Connect(t, server.ConnString())
	defer conn.Close(t.Context())
	deadline := time.Now().Add(patience)
	for count := -1; count != 0; time.Sleep(time.Millisecond) {
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, name).Scan(&count)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d sessions of a killed client are left, error %v", count, err)
		}
	}
}
