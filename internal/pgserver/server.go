//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Server is a PostgreSQL server with its files. Its methods are safe for
// concurrent use; one waits for another to end.
type Server struct {
	binaries  string
	account   *syscall.Credential
	directory string

	mu         sync.Mutex
	postmaster *postmaster // nil before the first start
	closed     bool
}

// Start runs a server on an empty database until the test ends. It fails the
// test, saying what to install, where the machine has no PostgreSQL.
func Start(tb testing.TB) *Server {
	tb.Helper()
	server, err := New()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	return server
}

// New makes a server with an empty database in a directory of its own, starts it
// and returns when it accepts connections. Settings are lines of
// postgresql.conf, such as max_connections=20; they override the defaults. The
// caller closes the server.
func New(settings ...string) (*Server, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	account, err := findAccount()
	if err != nil {
		return nil, err
	}
	directory, err := makeDirectory(account)
	if err != nil {
		return nil, err
	}
	server := &Server{binaries: binaries, account: account, directory: directory}
	if err := server.setUp(settings); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return server, nil
}

func (s *Server) setUp(settings []string) error {
	if err := s.initialise(); err != nil {
		return err
	}
	if err := s.configure(settings); err != nil {
		return err
	}
	return s.Restart()
}

// initialise makes the files of an empty database. They need no sync: a crash of
// the machine ends the test anyway, and a crash of the server loses no write
// that the system has taken.
func (s *Server) initialise() error {
	initdb := s.command("initdb", "-D", s.data(), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync",
		"--auth-local=trust", "--auth-host=scram-sha-256")
	if output, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("pgserver: initdb: %w\n%s", err, output)
	}
	return nil
}

// configure appends to what initdb wrote, whose defaults are the durable ones.
// Shared memory is made of files in the directory, so that a killed server
// leaves none behind in the system.
func (s *Server) configure(settings []string) error {
	lines := append([]string{
		"listen_addresses = ''",
		"max_connections = 100",
		"log_min_messages = warning",
		"dynamic_shared_memory_type = mmap",
	}, settings...)
	lines = append(lines, "port = 5432", "unix_socket_directories = '"+strings.ReplaceAll(s.directory, "'", "''")+"'", "")
	file, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	_, err = file.WriteString(strings.Join(lines, "\n"))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	return nil
}

// command is one of the server's programs, run as the server's user. It knows
// nothing of the PG… variables that may be set for other servers.
func (s *Server) command(name string, arguments ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(s.binaries, name), arguments...)
	command.Dir = s.directory
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			command.Env = append(command.Env, variable)
		}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.account, Setsid: true}
	return command
}

// ConnString returns the URL of the database postgres for its superuser, who
// needs no password.
func (s *Server) ConnString() string {
	query := url.Values{"host": {s.directory}, "port": {"5432"}, "sslmode": {"disable"}}
	return "postgres://postgres@/postgres?" + query.Encode()
}

// Socket returns the path of the unix socket that the server listens on.
func (s *Server) Socket() string { return socketIn(s.directory) }

func socketIn(directory string) string { return filepath.Join(directory, ".s.PGSQL.5432") }

func (s *Server) data() string { return filepath.Join(s.directory, "data") }

// Close ends the server and removes its files. Closing it again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.postmaster.running() {
		err = s.end(syscall.SIGQUIT)
	}
	s.removeSharedMemory()
	return errors.Join(err, os.RemoveAll(s.directory))
}
