//go:build unix

package crash

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// TestPostgres_ClientKilledWhileWriting kills a child that writes to PostgreSQL
// with many goroutines. The next child continues with the same schema.
func TestPostgres_ClientKilledWhileWriting(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	given := task{location: location{postgresStore, server.ConnString() + pgtest.SessionName(childName), "crash"}}
	killWhileWriting(t, given, func(after uint64) contents {
		pgtest.AwaitSessionsEnd(t, server, childName)
		return survivorsOn(t, server, given.Schema, after)
	})
}

// TestPostgres_ClientKilledWhileCreatingSchema kills a child in its first moments.
// The schema is then absent, or whole.
func TestPostgres_ClientKilledWhileCreatingSchema(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	absent, whole := 0, 0
	for round := range *rounds {
		given := task{Round: round, location: location{postgresStore, server.ConnString() + pgtest.SessionName(childName), fmt.Sprintf("crash_%d", round)}}
		known := newKnown()
		run(t, given, opening, upTo(60*time.Millisecond), known.note)
		pgtest.AwaitSessionsEnd(t, server, childName)
		if hasSchema(t, server, given.Schema) {
			whole++
		} else {
			absent++
		}
		if found, _, _ := known.compare(survivorsOn(t, server, given.Schema, 0)); !found.isEmpty() {
			t.Fatalf("round %d: %v", round, found)
		}
	}
	t.Logf("%d rounds: the schema was absent after %d and whole after %d", *rounds, absent, whole)
}

// childName names the sessions of a child.
const childName = "child"

func hasSchema(t *testing.T, server *pgserver.Server, schema string) (exists bool) {
	t.Helper()
	conn := pgtest.Connect(t, server.ConnString())
	defer conn.Close(t.Context())
	must(t, conn.QueryRow(t.Context(), `SELECT to_regnamespace($1) IS NOT NULL`, schema).Scan(&exists))
	return exists
}

// survivorsOn checks the schema that is left and returns its contents. The server may still
// be in recovery.
func survivorsOn(t *testing.T, server *pgserver.Server, schema string, after uint64) contents {
	t.Helper()
	var store *postgres.Store
	err := pgtest.UntilAvailable(func() (err error) {
		store, err = postgres.Open(t.Context(), server.ConnString(), postgres.WithSchema(schema))
		return err
	})
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	defer store.Close()
	return checkedContents(t, store, after)
}
