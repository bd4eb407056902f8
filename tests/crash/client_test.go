//go:build unix

package crash

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestClientKilledWhileWriting kills a process that writes to PostgreSQL with
// many goroutines, and goes on with the same schema.
func TestClientKilledWhileWriting(t *testing.T) {
	server := startServer(t)
	given := task{Store: "postgres", Path: server.ConnString() + sessionsOfChild, Schema: "crash"}
	kept := newLedger()
	inFlight, whole := 0, 0
	for given.Round = range *rounds {
		run(t, given, "ready", upTo(80*time.Millisecond), kept.note)
		awaitNoChild(t, server)
		left := survivorsOn(t, server, given.Schema)
		if found := kept.compare(left); !found.clean() {
			t.Fatalf("round %d: %v", given.Round, found)
		}
		inFlight += len(kept.inFlight)
		whole += carriedOut(kept, left)
		kept.adopt(left)
	}
	if kept.acked == 0 {
		t.Error("no write was ever acknowledged")
	}
	t.Logf("%d rounds: %d writes acknowledged, 0 lost; %d in flight, %d of them carried out and the others not at all",
		*rounds, kept.acked, inFlight, whole)
}

// TestClientKilledWhileMakingTheSchema kills the process in its first moments.
// The next one finds nothing, or a whole schema.
func TestClientKilledWhileMakingTheSchema(t *testing.T) {
	server := startServer(t)
	missing, whole := 0, 0
	for round := range *rounds {
		given := task{Round: round, Store: "postgres", Path: server.ConnString() + sessionsOfChild, Schema: fmt.Sprintf("crash_%d", round)}
		kept := newLedger()
		run(t, given, "opening", upTo(60*time.Millisecond), kept.note)
		awaitNoChild(t, server)
		if hasSchema(t, server, given.Schema) {
			whole++
		} else {
			missing++
		}
		if found := kept.compare(survivorsOn(t, server, given.Schema)); !found.clean() {
			t.Fatalf("round %d: %v", round, found)
		}
	}
	t.Logf("%d rounds: %d without a schema, %d with a whole one", *rounds, missing, whole)
}

// startServer skips the test where there is no PostgreSQL, or fails it where CI
// is set.
func startServer(t *testing.T) *pgserver.Server {
	t.Helper()
	if err := pgserver.Available(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	return pgserver.Start(t)
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

// sessionsOfChild is what tells the sessions of a child from others.
const sessionsOfChild = "&application_name=child"

// awaitNoChild returns once the server has done with the child: a session carries
// out what it has been sent, whoever is there to hear the answer.
func awaitNoChild(t *testing.T, server *pgserver.Server) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for ask(t, server, `SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'child'`) {
		if time.Now().After(deadline) {
			t.Fatal("the sessions of a killed child do not end")
		}
		time.Sleep(time.Millisecond)
	}
}

func hasSchema(t *testing.T, server *pgserver.Server, schema string) bool {
	t.Helper()
	return ask(t, server, `SELECT to_regnamespace($1) IS NOT NULL`, schema)
}

// ask asks the server a question behind the back of the stores.
func ask(t *testing.T, server *pgserver.Server, question string, args ...any) (answer bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), question, args...).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// survivorsOn checks and lists what is left on the server.
func survivorsOn(t *testing.T, server *pgserver.Server, schema string) []relayer.Record {
	t.Helper()
	store, err := postgres.Open(t.Context(), server.ConnString(), postgres.WithSchema(schema))
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	defer store.Close()
	return sound(t, store)
}
