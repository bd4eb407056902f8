//go:build unix

// Package pgserver runs the PostgreSQL and PgBouncer of the machine for tests:
// real servers on empty databases in temporary directories, reached over unix
// sockets. A test can kill, restart, stop and pause a server, give it a
// synchronous standby, and promote that.
//
//	server := pgserver.Start(t)
//	pool, err := pgxpool.New(ctx, server.ConnString())
//
// Settings that affect durability have PostgreSQL's defaults: a commit that a
// client has seen survives [Server.Kill].
//
// Neither program runs as root. If the tests do, both run as the user postgres,
// or nobody if there is no such user. On Linux, killing the test process ends
// them too, unless they are paused.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
)

var errNotRunning = errors.New("pgserver: the server is not running")

// Server is a PostgreSQL server and its files. All methods are safe for
// concurrent use and run one at a time.
type Server struct {
	binaries  string
	account   *syscall.Credential
	directory string
	release   func() error // of the template

	mu         sync.Mutex
	postmaster *process.Process // the first process of the server; nil before the first start
}

// Start runs a server on an empty database until the test ends. It skips the test
// if the machine has no PostgreSQL, and fails it instead if CI is set. For the
// settings see [New].
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	require(tb, Available())
	server, err := New(settings...)
	must(tb, err)
	closeAtEnd(tb, server)
	return server
}

// Available returns an error that names the missing package if the machine has no
// PostgreSQL server. With -short, nothing is available.
func Available() error {
	if testing.Short() {
		return errors.New("pgserver: skipped by -short")
	}
	_, err := Binaries()
	return err
}

// Binaries returns the directory of initdb: the one on PATH, or the newest of
// those that Debian keeps off PATH.
func Binaries() (string, error) {
	// initdb expects the other programs next to its real file, not next to a link.
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	packaged, _ := filepath.Glob("/usr/lib/postgresql/[1-9][0-9]/bin/initdb")
	if len(packaged) == 0 {
		return "", errors.New("pgserver: no PostgreSQL on this machine: install it (Debian: postgresql-15), or add the directory of initdb to PATH")
	}
	return filepath.Dir(slices.Max(packaged)), nil
}

// require skips the test if a program is missing, and fails it in CI without -short.
func require(tb testing.TB, missing error) {
	tb.Helper()
	if missing != nil && (testing.Short() || os.Getenv("CI") == "") {
		tb.Skip(missing)
	}
	must(tb, missing)
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func closeAtEnd(tb testing.TB, server *Server) {
	tb.Cleanup(func() { must(tb, server.Close()) })
}

// New creates a server with an empty database in a new directory, starts it and
// returns when it accepts connections. Settings are lines of postgresql.conf,
// such as max_connections=20; they override the defaults. The caller closes the
// server.
func New(settings ...string) (*Server, error) {
	server, err := allocate()
	if err != nil {
		return nil, err
	}
	if err := server.setUp(settings); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

// allocate returns a server that has a directory and no files in it.
func allocate() (*Server, error) {
	binaries, err := Binaries()
	if err != nil {
		return nil, err
	}
	account, err := process.Account()
	if err != nil {
		return nil, err
	}
	directory, err := process.MakeDirectory(account)
	if err != nil {
		return nil, err
	}
	return &Server{binaries: binaries, account: account, directory: directory, release: useTemplate()}, nil
}

// template is the result of one initdb, which servers of [New] copy: that is faster than
// initdb. It is removed with the last server.
var template struct {
	mu        sync.Mutex
	servers   int
	directory string // empty before the first server
}

// useTemplate counts a server until it calls release.
func useTemplate() (release func() error) {
	template.mu.Lock()
	defer template.mu.Unlock()
	template.servers++
	return sync.OnceValue(func() error {
		template.mu.Lock()
		defer template.mu.Unlock()
		if template.servers--; template.servers > 0 {
			return nil
		}
		err := os.RemoveAll(template.directory)
		template.directory = ""
		return err
	})
}

func (s *Server) copyTemplate() error {
	data, err := s.makeTemplate()
	if err != nil {
		return err
	}
	return run(process.Command(s.account, s.directory, "/bin/cp", "-pR", data, s.data()))
}

// makeTemplate runs initdb unless another server has done so, and returns the data
// directory.
func (s *Server) makeTemplate() (data string, err error) {
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.directory == "" {
		directory, err := process.MakeDirectory(s.account)
		if err != nil {
			return "", err
		}
		// The files need no sync: a crash of the machine ends the test anyway.
		err = run(s.command("initdb", "-D", filepath.Join(directory, "data"), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync",
			"--auth-local=trust", "--auth-host=scram-sha-256"))
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(directory))
		}
		template.directory = directory
	}
	return filepath.Join(template.directory, "data"), nil
}

func (s *Server) setUp(settings []string) error {
	if err := s.copyTemplate(); err != nil {
		return err
	}
	defaults := []string{
		"listen_addresses = ''",
		"log_min_messages = warning",
		// Dynamic shared memory in files of the directory, which Close removes.
		"dynamic_shared_memory_type = mmap",
		// For a standby that was stopped for a while.
		"wal_keep_size = 256MB",
	}
	if err := s.configure(append(append(defaults, settings...), s.socketSetting())...); err != nil {
		return err
	}
	return s.Restart()
}

// configure appends to postgresql.conf, in which the last line for a setting
// applies.
func (s *Server) configure(settings ...string) error {
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	_, err = file.WriteString(strings.Join(settings, "\n") + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	return nil
}

func (s *Server) socketSetting() string { return "unix_socket_directories = '" + s.directory + "'" }

// ConnString returns the URL of the database postgres for its superuser, who
// needs no password.
func (s *Server) ConnString() string { return HostList(s) }

// Socket returns the path of the unix socket on which the server listens.
func (s *Server) Socket() string { return filepath.Join(s.directory, ".s.PGSQL.5432") }

func (s *Server) data() string { return filepath.Join(s.directory, "data") }

func (s *Server) log() string { return filepath.Join(s.directory, "log") }

// Restart starts a server that is not running on the files it has, and returns
// when it accepts connections.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start()
}

func (s *Server) start() error {
	postmaster, err := process.Start(s.command("postgres", "-D", s.data()), s.log())
	if err != nil {
		return err
	}
	s.postmaster = postmaster
	err = process.Await("ready", func() (bool, error) {
		if !postmaster.Running() {
			return false, errors.New("pgserver: the server ended at its start")
		}
		lines := s.lockFile()
		return len(lines) >= 8 && lines[0] == strconv.Itoa(postmaster.PID) && strings.TrimSpace(lines[7]) == "ready", nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, process.Tail(s.log()))
	}
	return nil
}

// Kill ends every process of the server with SIGKILL, as the loss of its machine
// would, and returns when none is left.
func (s *Server) Kill() error {
	return s.whileRunning(func(pid int) error {
		// The children go first: as long as their parent is stopped, it cannot replace them.
		err := process.SignalChildren(pid, syscall.SIGKILL, process.Ended)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-s.postmaster.Exited
		return err
	})
}

// whileRunning calls act with the ID of the first process, or returns errNotRunning.
func (s *Server) whileRunning(act func(pid int) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.postmaster.Running() {
		return errNotRunning
	}
	return act(s.postmaster.PID)
}

// Stop shuts the server down without waiting for its clients, whose transactions
// are rolled back. It returns when no process of the server is left.
func (s *Server) Stop() error {
	return s.whileRunning(func(pid int) error { return s.shutDown(pid, syscall.SIGINT) })
}

func (s *Server) shutDown(pid int, signal syscall.Signal) error {
	if err := process.Resume(pid); err != nil {
		return err
	}
	_ = syscall.Kill(pid, signal)
	return process.Await("ended", func() (bool, error) { return !s.postmaster.Running(), nil })
}

// Pause stops every process of the server with SIGSTOP: connections stay open and
// new ones are accepted, and no request gets a response until [Server.Continue].
func (s *Server) Pause() error {
	return s.whileRunning(func(pid int) error { return process.SignalChildren(pid, syscall.SIGSTOP, process.Stopped) })
}

// Continue ends a [Server.Pause].
func (s *Server) Continue() error { return s.whileRunning(process.Resume) }

// Close ends the server and removes its files.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.postmaster.Running() {
		err = s.shutDown(s.postmaster.PID, syscall.SIGQUIT)
	}
	s.removeSharedMemory()
	return errors.Join(err, os.RemoveAll(s.directory), s.release())
}

// lockFile returns the lines of postmaster.pid: first the process ID, seventh the
// IDs of the shared memory, eighth the status.
func (s *Server) lockFile() []string {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// removeSharedMemory removes the few bytes of System V shared memory that a killed
// server leaves until its next start. The system limits their number.
func (s *Server) removeSharedMemory() {
	lines := s.lockFile()
	if len(lines) < 7 {
		return
	}
	if ids := strings.Fields(lines[6]); len(ids) == 2 {
		_ = exec.Command("ipcrm", "-m", ids[1]).Run()
	}
}

// command returns one of the server's programs, to run as the server's user
// without the PG… variables that may be set for other servers.
func (s *Server) command(name string, arguments ...string) *exec.Cmd {
	return process.Command(s.account, s.directory, filepath.Join(s.binaries, name), arguments...)
}

func run(command *exec.Cmd) error {
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("pgserver: %s: %w\n%s", filepath.Base(command.Path), err, output)
	}
	return nil
}

// connect begins a session. Not every distribution of the server has psql.
func (s *Server) connect() (*pgconn.PgConn, error) {
	conn, err := pgconn.Connect(context.Background(), s.ConnString()+"&connect_timeout=30")
	if err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	return conn, nil
}

// query runs SQL in a new session and returns the first column of its result.
func (s *Server) query(sql string) (string, error) {
	conn, err := s.connect()
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	return ask(conn, sql)
}

func ask(conn *pgconn.PgConn, sql string) (string, error) {
	results, err := conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return "", fmt.Errorf("pgserver: %s: %w", sql, err)
	}
	var lines []string
	for _, row := range results[len(results)-1].Rows {
		lines = append(lines, string(row[0]))
	}
	return strings.Join(lines, "\n"), nil
}
