//go:build unix

package pgserver

import "testing"

// TestStandby_Failover commits, kills the primary at once and promotes the
// standby. Then the servers swap roles.
func TestStandby_Failover(t *testing.T) {
	t.Parallel()
	primary, standby := StartPair(t)
	want(t, primary, "CREATE TABLE kept (n int)", "")
	for _, kept := range []string{"1", "2"} {
		want(t, primary, "INSERT INTO kept VALUES (1)", "")
		want(t, standby, "SELECT pg_is_in_recovery()", "t")
		must(t, primary.Kill())
		must(t, standby.Promote())
		want(t, standby, "SELECT count(*) FROM kept", kept)
		must(t, primary.Follow(standby))
		primary, standby = standby, primary
	}
}

// TestStandby_CommitWaits: a commit waits while the standby is away, unless the
// standby is made asynchronous.
func TestStandby_CommitWaits(t *testing.T) {
	t.Parallel()
	primary, standby := StartPair(t)
	want(t, primary, "CREATE TABLE kept (n int)", "")
	for _, fault := range []struct{ begin, end func() error }{
		{standby.Pause, standby.Continue},
		{standby.Stop, standby.Restart},
		{standby.Kill, standby.Restart},
	} {
		must(t, fault.begin())
		wait := wantWaiting(t, primary, "INSERT INTO kept VALUES (1)")
		must(t, fault.end())
		wait()
	}
	must(t, standby.Pause())
	must(t, primary.Configure("synchronous_standby_names = ''"))
	want(t, primary, "INSERT INTO kept VALUES (1)", "")
	want(t, primary, "SELECT count(*) FROM kept", "4")
}

// TestStandby_WrongOrder covers calls that fail and change nothing.
func TestStandby_WrongOrder(t *testing.T) {
	t.Parallel()
	primary, standby := StartPair(t)
	if standby.Follow(primary) == nil {
		t.Error("Follow of a running server succeeds")
	}
	if primary.Promote() == nil {
		t.Error("Promote of a primary succeeds")
	}
	must(t, standby.Stop())
	if standby.Configure("work_mem = '8MB'") == nil {
		t.Error("Configure of a stopped server succeeds")
	}
	want(t, primary, "SELECT 1", "1")
}
