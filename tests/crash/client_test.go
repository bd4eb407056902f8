//go:build unix

package crash

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestPostgres_ClientKilledWhileWriting kills a child that writes to PostgreSQL
// with many goroutines. The next child continues with the same schema.
func TestPostgres_ClientKilledWhileWriting(t *testing.T) {
	server := pgserver.Start(t)
	given := task{Store: postgresStore, Path: server.ConnString() + childSessions, Schema: "crash"}
	killWhileWriting(t, given, func() []relayer.Record {
		awaitChildSessionsEnd(t, server)
		return survivorsOn(t, server, given.Schema)
	})
}

// TestPostgres_ClientKilledWhileCreatingSchema kills a child in its first moments.
// The schema is then absent, or whole.
func TestPostgres_ClientKilledWhileCreatingSchema(t *testing.T) {
	server := pgserver.Start(t)
	absent, whole := 0, 0
	for round := range *rounds {
		given := task{Round: round, Store: postgresStore, Path: server.ConnString() + childSessions, Schema: fmt.Sprintf("crash_%d", round)}
		known := newLedger()
		run(t, given, opening, upTo(60*time.Millisecond), known.note)
		awaitChildSessionsEnd(t, server)
		if hasSchema(t, server, given.Schema) {
			whole++
		} else {
			absent++
		}
		if found := known.compare(survivorsOn(t, server, given.Schema)); !found.isEmpty() {
			t.Fatalf("round %d: %v", round, found)
		}
	}
	t.Logf("%d rounds: the schema was absent after %d and whole after %d", *rounds, absent, whole)
}

func openOn(t *testing.T, connString string, options ...postgres.Option) *postgres.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), connString, options...)
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

// childSessions marks the sessions of a child.
const childSessions = "&application_name=child"

// awaitChildSessionsEnd waits until the server has ended the sessions of a killed
// child. A session first completes the requests that it has received.
func awaitChildSessionsEnd(t *testing.T, server *pgserver.Server) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for query(t, server, `SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'child'`) {
		if time.Now().After(deadline) {
			t.Fatal("the sessions of a killed child do not end")
		}
		time.Sleep(time.Millisecond)
	}
}

func hasSchema(t *testing.T, server *pgserver.Server, schema string) bool {
	t.Helper()
	return query(t, server, `SELECT to_regnamespace($1) IS NOT NULL`, schema)
}

// query runs a query without a store.
func query(t *testing.T, server *pgserver.Server, statement string, args ...any) (result bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), statement, args...).Scan(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// survivorsOn checks the schema that is left and returns its records.
func survivorsOn(t *testing.T, server *pgserver.Server, schema string) []relayer.Record {
	t.Helper()
	store, err := postgres.Open(t.Context(), server.ConnString(), postgres.WithSchema(schema))
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	defer store.Close()
	return checkedRecords(t, store)
}
