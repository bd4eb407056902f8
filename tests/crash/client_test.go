//go:build unix

package crash

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// TestPostgres_ClientKilledWhileWriting kills a child that writes to PostgreSQL
// with many goroutines. The next child continues with the same schema.
func TestPostgres_ClientKilledWhileWriting(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	there := location{postgresStore, server.ConnString() + pgtest.SessionName(childName), "crash"}
	killWhileWriting(t, there, func() { pgtest.AwaitSessionsEnd(t, server, childName) })
}

// TestPostgres_ClientKilledWhileCreatingSchema kills a child in its first moments.
// The schema is then absent, or whole.
func TestPostgres_ClientKilledWhileCreatingSchema(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	absent, whole := 0, 0
	for round := range *rounds {
		there := location{postgresStore, server.ConnString() + pgtest.SessionName(childName), fmt.Sprintf("crash_%d", round)}
		known := newKnown()
		run(t, task{Round: round, location: there}, opening, upTo(60*time.Millisecond), known.note)
		pgtest.AwaitSessionsEnd(t, server, childName)
		if hasSchema(t, server, there.Schema) {
			whole++
		} else {
			absent++
		}
		if found, _, _ := known.compare(survivors(t, there, 0)); !found.isEmpty() {
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
