//go:build unix

package crash

import (
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestDatabaseKilled kills the server while two stores write to it, and starts it
// again on the same files.
func TestDatabaseKilled(t *testing.T) {
	server := startServer(t)
	stores := []*postgres.Store{openOn(t, server.ConnString()), openOn(t, server.ConnString())}
	withstand(t, server, stores, func(round int) {
		if err := server.Kill(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := server.Restart(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	})
}

// TestSessionKilled kills one process of the server, which then ends all others
// and recovers by itself. Unlike the end of the whole server it can strike in
// the midst of a commit.
func TestSessionKilled(t *testing.T) {
	server := startServer(t)
	stores := []*postgres.Store{openOn(t, server.ConnString()), openOn(t, server.ConnString())}
	withstand(t, server, stores, func(round int) { killSession(t, server) })
}

// killSession kills the session that has the turn to write, or else another.
func killSession(t *testing.T, server *pgserver.Server) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var pid int
	err = conn.QueryRow(t.Context(), `
		SELECT pid FROM pg_stat_activity WHERE application_name = 'relayer'
		ORDER BY state = 'active' AND wait_event_type IS DISTINCT FROM 'Lock' DESC LIMIT 1`).Scan(&pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// TestServerHangs makes the server hang, for longer than the stores wait for it
// at times. What it was sent by then it carries out when nobody waits any more.
func TestServerHangs(t *testing.T) {
	server := startServer(t)
	patience := []postgres.Option{postgres.WithTimeout(100 * time.Millisecond), postgres.WithConnectTimeout(100 * time.Millisecond)}
	stores := []*postgres.Store{openOn(t, server.ConnString(), patience...), openOn(t, server.ConnString(), patience...)}
	withstand(t, server, stores, func(round int) {
		if err := server.Pause(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		time.Sleep(upTo(400 * time.Millisecond))
		if err := server.Continue(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	})
}

// TestConnectionsCut cuts connections between two stores and their server, each
// time at another moment of a write.
func TestConnectionsCut(t *testing.T) {
	server := startServer(t)
	between := startProxy(t, server)
	stores := []*postgres.Store{openOn(t, between.connString(server)), openOn(t, between.connString(server))}
	c := withstand(t, server, stores, func(int) {
		for _, f := range []fault{requestLost, requestHalved, requestUnheard, answerLost, anyMoment} {
			between.strike(f)
			time.Sleep(upTo(20 * time.Millisecond))
		}
	})
	if c.tally.carriedOut.Load() == 0 || c.tally.notCarriedOut.Load() == 0 {
		t.Error("writes of unknown outcome came out one way only")
	}
}
