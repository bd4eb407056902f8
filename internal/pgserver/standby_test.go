//go:build unix

package pgserver_test

import (
	"testing"
	"time"

	"github.com/go-relayer/relayer/internal/pgserver"
)

func startPair(t *testing.T) (primary, standby *pgserver.Server) {
	t.Helper()
	needServer(t)
	return pgserver.StartPair(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStandby_Failover commits on the primary, kills it without a pause, and
// promotes the standby. Then the servers swap roles.
func TestStandby_Failover(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	c := connect(t, primary)
	c.want(t, "CREATE TABLE kept (n int)", "")
	for round := range 2 {
		c.want(t, "INSERT INTO kept VALUES (1) RETURNING n", "1")
		connect(t, standby).want(t, "SELECT pg_is_in_recovery()", "t")
		must(t, primary.Kill())
		must(t, standby.Promote())
		c = connect(t, standby)
		c.want(t, "SELECT pg_is_in_recovery()", "f")
		c.want(t, "SELECT count(*) FROM kept", []string{"1", "2"}[round])
		if round == 0 {
			must(t, primary.Follow(standby))
			primary, standby = standby, primary
		}
	}
}

// TestStandby_CommitWaits stops the standby: a commit waits until it is back,
// unless the standby is made asynchronous.
func TestStandby_CommitWaits(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	c := connect(t, primary)
	c.want(t, "CREATE TABLE kept (n int)", "")
	for name, fault := range map[string]struct{ stop, start func() error }{
		"Pause": {standby.Pause, standby.Continue},
		"Stop":  {standby.Stop, standby.Restart},
		"Kill":  {standby.Kill, standby.Restart},
	} {
		must(t, fault.stop())
		must(t, c.ask("INSERT INTO kept VALUES (1)"))
		c.wantSilence(t, 300*time.Millisecond)
		must(t, fault.start())
		if _, err := c.answer(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	must(t, standby.Pause())
	must(t, primary.Configure("synchronous_standby_names = ''"))
	c.want(t, "INSERT INTO kept VALUES (1)", "")
	c.want(t, "SELECT count(*) FROM kept", "4")
}

// TestStandby_WrongOrder covers calls that fail and change nothing.
func TestStandby_WrongOrder(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	if standby.Follow(primary) == nil {
		t.Error("a running server follows another")
	}
	if primary.Promote() == nil {
		t.Error("a primary is promoted")
	}
	must(t, standby.Stop())
	if standby.Configure("work_mem = '8MB'") == nil {
		t.Error("a stopped server is configured")
	}
	connect(t, primary).want(t, "SELECT 1", "1")
}
