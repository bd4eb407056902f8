//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// childVariable makes a process of the test binary one that only runs a server.
const childVariable = "PGSERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		runServer()
	}
	os.Exit(m.Run())
}

func runServer() {
	server, err := New()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.directory, template.directory)
	select {}
}

// want runs SQL in a new session and compares its output.
func want(t *testing.T, server *Server, sql, want string) {
	t.Helper()
	if got, err := server.query(sql); got != want || err != nil {
		t.Fatalf("%s: %q, error %v, want %q", sql, got, err, want)
	}
}

// wantWaiting runs SQL in a new session that gets no response for a while. The
// returned function waits for its success.
func wantWaiting(t *testing.T, server *Server, sql string) (wait func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := server.query(sql)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("%s: error %v, want no response", sql, err)
	case <-time.After(300 * time.Millisecond):
	}
	return func() {
		t.Helper()
		must(t, <-done)
	}
}

// pidsOf returns all processes of a server.
func pidsOf(t *testing.T, server *Server) []int {
	t.Helper()
	// A server accepts connections before all of its processes have started.
	must(t, server.awaitQuery("SELECT (count(*) >= 3)::int FROM pg_stat_activity WHERE pid <> pg_backend_pid()", "1"))
	output, err := server.query("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
	must(t, err)
	pids := []int{server.postmaster.PID}
	for line := range strings.Lines(output) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		must(t, err)
		pids = append(pids, pid)
	}
	if len(pids) < 4 {
		t.Fatalf("processes %v of a whole server", pids)
	}
	return pids
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if isRunning(pid) {
			t.Errorf("process %d runs", pid)
		}
	}
}

// isRunning reports false for a zombie: its command line is empty.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) || len(line) > 0
}

func TestStart_DurableDefaults(t *testing.T) {
	// Variables for other servers have no effect.
	t.Setenv("PGDATA", "/nowhere")
	t.Setenv("PGPORT", "1")
	server := Start(t, "max_connections = 20")
	for setting, value := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on",
		"listen_addresses": "", "server_encoding": "UTF8", "max_connections": "20",
	} {
		want(t, server, "SHOW "+setting, value)
	}
	want(t, server, "SELECT datcollate FROM pg_database WHERE datname = current_database()", "C")
}

func TestNew_WrongSetting(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	if _, err := New("no_such_setting=1"); err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("error %v", err)
	}
}

func TestServer_KillAndStop(t *testing.T) {
	t.Parallel()
	server := Start(t)
	want(t, server, "CREATE TABLE kept (n int)", "")
	kept := 0
	for name, end := range map[string]func() error{"Kill": server.Kill, "Stop": server.Stop} {
		for _, isPaused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/paused=%v", name, isPaused), func(t *testing.T) {
				kept++
				want(t, server, "INSERT INTO kept VALUES (1)", "")
				// A session that is busy does not delay the end of the server.
				busy := make(chan error, 1)
				go func() {
					_, err := server.query("SELECT pg_sleep(3600)")
					busy <- err
				}()
				must(t, server.awaitQuery("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid <> pg_backend_pid()", "1"))
				pids := pidsOf(t, server)
				if isPaused {
					must(t, server.Pause())
				}
				must(t, end())
				wantGone(t, pids)
				if <-busy == nil {
					t.Error("the sleep succeeded")
				}
				if _, err := server.query("SELECT 1"); err == nil {
					t.Error("the server accepts connections")
				}
				must(t, server.Restart())
				want(t, server, "SELECT count(*) FROM kept", strconv.Itoa(kept))
			})
		}
	}
}

func TestServer_PauseAndContinue(t *testing.T) {
	t.Parallel()
	server := Start(t)
	must(t, server.Pause())
	wait := wantWaiting(t, server, "SELECT 1")
	must(t, server.Continue())
	wait()
}

func TestServer_CloseLeavesNothing(t *testing.T) {
	t.Parallel()
	server := Start(t)
	pids := pidsOf(t, server)
	must(t, errors.Join(server.Pause(), server.Close(), server.Close()))
	wantGone(t, pids)
	if _, err := os.Stat(server.directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory: error %v", err)
	}
}

// TestServer_CloseDuringRestart leaves no directory, in any order of the two.
func TestServer_CloseDuringRestart(t *testing.T) {
	t.Parallel()
	for range 3 {
		closeDuringRestart(t)
	}
}

func closeDuringRestart(t *testing.T) {
	server := Start(t)
	must(t, server.Stop())
	var restart sync.WaitGroup
	restart.Go(func() { _ = server.Restart() })
	must(t, server.Close())
	restart.Wait()
	if _, err := os.Stat(server.directory); !errors.Is(err, os.ErrNotExist) || server.postmaster.Running() {
		t.Errorf("directory: error %v, server runs: %v", err, server.postmaster.Running())
	}
}

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

// TestPgBouncer_PoolMode: a setting made outside of a transaction stays with the
// client in session mode only.
func TestPgBouncer_PoolMode(t *testing.T) {
	t.Parallel()
	server := Start(t)
	for mode, kept := range map[string]string{"session": "4MB 4MB", "transaction": "4MB 1MB"} {
		t.Run(mode, func(t *testing.T) {
			through := StartPgBouncer(t, server, mode)
			// client changes a setting, and returns what it was before.
			client := func() string {
				t.Helper()
				conn, err := pgconn.Connect(t.Context(), through)
				must(t, err)
				defer conn.Close(t.Context())
				before, err := ask(conn, "SHOW work_mem")
				must(t, err)
				_, err = ask(conn, "SET work_mem = '1MB'")
				must(t, err)
				return before
			}
			if got := client() + " " + client(); got != kept {
				t.Errorf("work_mem of two clients: %s, want %s", got, kept)
			}
		})
	}
}
