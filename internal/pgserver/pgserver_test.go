//go:build unix

package pgserver_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer/internal/pgserver"
)

// childVariable makes a process of the test binary one that only runs a server.
const childVariable = "PGSERVER_TEST_CHILD"

func child() {
	server, err := pgserver.New()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.Socket())
	select {}
}

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		child()
	}
	os.Exit(m.Run())
}

// needServer skips where there is no PostgreSQL, except in CI, which has one.
func needServer(t *testing.T) {
	t.Helper()
	err := pgserver.Available()
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

func start(t *testing.T) *pgserver.Server {
	t.Helper()
	needServer(t)
	return pgserver.Start(t)
}

func newServer(t *testing.T, settings ...string) *pgserver.Server {
	t.Helper()
	needServer(t)
	server, err := pgserver.New(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

// pidsOf returns all processes of a server, the one that answers included.
func pidsOf(t *testing.T, c client) []int {
	t.Helper()
	answer, err := c.query(`SELECT pid FROM pg_stat_activity UNION SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int`)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for line := range strings.SplitSeq(answer, "\n") {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) < 4 {
		t.Fatalf("processes %v of a whole server", pids)
	}
	return pids
}

// running reports whether there is such a process, other than one that nobody
// has asked yet how it ended: its command line is empty.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) || len(line) > 0
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d runs", pid)
		}
	}
}

func TestStart(t *testing.T) {
	server := start(t)
	c := connect(t, server)
	c.want(t, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", "0")
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on",
		"listen_addresses": "", "max_connections": "100", "server_encoding": "UTF8", "lc_collate": "C",
	} {
		c.want(t, "SHOW "+setting, want)
	}
}

// TestConnString: what it names is the socket of the server, and no password.
func TestConnString(t *testing.T) {
	server := start(t)
	parsed, err := url.Parse(server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	if socket := filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port")); socket != server.Socket() {
		t.Errorf("socket %s of %s, want %s", socket, parsed, server.Socket())
	}
	if parsed.Scheme != "postgres" || parsed.User.String() != "postgres" || parsed.Path != "/postgres" {
		t.Errorf("URL %s", parsed)
	}
}

func TestSettings(t *testing.T) {
	server := newServer(t, "max_connections=20", "application_name = 'a b'")
	c := connect(t, server)
	c.want(t, "SHOW max_connections", "20")
	c.want(t, "SHOW application_name", "a b")
}

// TestWrongSetting: the error has the server's own words, and nothing is left.
func TestWrongSetting(t *testing.T) {
	needServer(t)
	t.Setenv("TMPDIR", shortDirectory(t))
	server, err := pgserver.New("no_such_setting=1")
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("server %v, error %v", server, err)
	}
	wantEmpty(t, os.Getenv("TMPDIR"))
}

// shortDirectory makes a directory that the server's user may pass through.
func shortDirectory(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	return directory
}

func wantEmpty(t *testing.T, directory string) {
	t.Helper()
	left, err := os.ReadDir(directory)
	if err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, error %v", directory, left, err)
	}
}

// TestUnsuitableTemporaryDirectory: where sockets cannot be, or the server's
// user cannot go, the server goes elsewhere.
func TestUnsuitableTemporaryDirectory(t *testing.T) {
	long := filepath.Join(shortDirectory(t), strings.Repeat("long/", 20))
	if err := os.MkdirAll(long, 0o755); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(shortDirectory(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{long, closed, filepath.Join(closed, "missing")} {
		t.Run(filepath.Base(directory), func(t *testing.T) {
			t.Setenv("TMPDIR", directory)
			connect(t, start(t)).want(t, "SELECT 1", "1")
		})
	}
	wantEmpty(t, long)
}

func TestEnvironmentOfOtherServers(t *testing.T) {
	t.Setenv("PGDATA", "/nowhere")
	t.Setenv("PGPORT", "1")
	t.Setenv("PGTZ", "nowhere")
	connect(t, start(t)).want(t, "SELECT 1", "1")
}

// TestWithoutPath finds the server that is off PATH, or says what to install.
func TestWithoutPath(t *testing.T) {
	t.Setenv("PATH", "")
	server, err := pgserver.New()
	if missing := pgserver.Available(); missing != nil {
		if err == nil || err.Error() != missing.Error() || !strings.Contains(err.Error(), "install") {
			t.Errorf("server %v, error %v, want %v", server, err, missing)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	connect(t, server).want(t, "SELECT 1", "1")
}

// TestCallersThreadEnds: the server does not go with the thread that asked for
// it.
func TestCallersThreadEnds(t *testing.T) {
	needServer(t)
	made := make(chan *pgserver.Server)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends here
		server, err := pgserver.New()
		if err != nil {
			t.Error(err)
		}
		made <- server
	}()
	server := <-made
	if server == nil {
		return
	}
	defer server.Close()
	time.Sleep(300 * time.Millisecond)
	connect(t, server).want(t, "SELECT 1", "1")
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	server := start(t)
	c := connect(t, server)
	c.want(t, "CREATE TABLE kept (n int)", "")
	for round := range 5 {
		c.want(t, fmt.Sprintf("INSERT INTO kept VALUES (%d) RETURNING n", round), strconv.Itoa(round))
		pids := pidsOf(t, c)
		open := connect(t, server)
		open.want(t, "BEGIN; INSERT INTO kept VALUES (-1)", "")
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		wantGone(t, pids)
		if _, err := c.query("SELECT 1"); err == nil {
			t.Error("a killed server answers")
		}
		if _, err := dial(server.Socket()); err == nil {
			t.Error("a killed server takes connections")
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		c = connect(t, server)
		c.want(t, "SELECT count(*) || ' ' || max(n) || ' ' || min(n) FROM kept", fmt.Sprintf("%d %d 0", round+1, round))
	}
}

// TestKillUnderWork: a backend that is deep in a computation does not see its
// postmaster's end, and would keep the next one from starting.
func TestKillUnderWork(t *testing.T) {
	t.Parallel()
	server := start(t)
	c := connect(t, server)
	pids := pidsOf(t, c)
	if err := c.ask("SELECT count(*) FROM generate_series(1, 1000000000)"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	connect(t, server).want(t, "SELECT 1", "1")
}

func TestStopAndRestart(t *testing.T) {
	t.Parallel()
	server := start(t)
	c := connect(t, server)
	c.want(t, "CREATE TABLE kept (n int)", "")
	pids := pidsOf(t, c)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	connect(t, server).want(t, "SELECT count(*) FROM kept", "0")
}

func TestPauseAndContinue(t *testing.T) {
	t.Parallel()
	server := start(t)
	c := connect(t, server)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := c.ask("SELECT 'late'"); err != nil {
		t.Fatal(err)
	}
	c.wantSilence(t, 300*time.Millisecond)
	dialed := make(chan error, 1)
	go func() {
		_, err := dial(server.Socket())
		dialed <- err
	}()
	select {
	case err := <-dialed:
		t.Fatalf("a hanging server answers a new connection: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.answer(); got != "late" || err != nil {
		t.Errorf("answer %q, error %v", got, err)
	}
	if err := <-dialed; err != nil {
		t.Error(err)
	}
}

// TestEndWhilePaused: a server that hangs can be ended in every way.
func TestEndWhilePaused(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	for name, end := range map[string]func() error{"Kill": server.Kill, "Stop": server.Stop} {
		pids := pidsOf(t, connect(t, server))
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := end(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		wantGone(t, pids)
		if err := server.Restart(); err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
	}
	pids := pidsOf(t, connect(t, server))
	if err := errors.Join(server.Pause(), server.Close()); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids)
}

// TestWrongOrder: what makes no sense now is an error, and changes nothing.
func TestWrongOrder(t *testing.T) {
	server := newServer(t)
	if err := server.Restart(); err == nil {
		t.Error("restart of a running server")
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{"Kill": server.Kill, "Stop": server.Stop, "Pause": server.Pause, "Continue": server.Continue} {
		if err := call(); err == nil {
			t.Errorf("%s of a killed server succeeds", name)
		}
	}
	if err := errors.Join(server.Close(), server.Close()); err != nil {
		t.Error(err)
	}
	if err := server.Restart(); err == nil {
		t.Error("restart of a closed server")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	needServer(t)
	t.Setenv("TMPDIR", shortDirectory(t))
	server, err := pgserver.New()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(server.Socket(), os.Getenv("TMPDIR")) {
		t.Fatalf("socket %s outside %s", server.Socket(), os.Getenv("TMPDIR"))
	}
	pids := pidsOf(t, connect(t, server))
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids)
	wantEmpty(t, os.Getenv("TMPDIR"))
}

func TestTwoServers(t *testing.T) {
	t.Parallel()
	one, other := start(t), start(t)
	connect(t, one).want(t, "CREATE TABLE mine (n int)", "")
	c := connect(t, other)
	c.want(t, "SELECT count(*) FROM pg_tables WHERE tablename = 'mine'", "0")
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	c.want(t, "SELECT 1", "1")
	if err := one.Restart(); err != nil {
		t.Fatal(err)
	}
	connect(t, one).want(t, "SELECT count(*) FROM mine", "0")
}
