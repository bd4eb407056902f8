//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
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

// Start runs a server on an empty database until the test ends. If the machine
// has no PostgreSQL, it fails the test with the packages to install. For the
// settings see [New].
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	server, err := New(settings...)
	if err != nil {
		tb.Fatal(err)
	}
	closeAtEnd(tb, server)
	return server
}

func closeAtEnd(tb testing.TB, server *Server) {
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
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
	return &Server{binaries: binaries, account: account, directory: directory}, nil
}

func (s *Server) setUp(settings []string) error {
	if err := s.initialise(); err != nil {
		return err
	}
	defaults := []string{
		"listen_addresses = ''",
		"max_connections = 100",
		"log_min_messages = warning",
		// Shared memory in files of the directory: a killed server leaves none behind.
		"dynamic_shared_memory_type = mmap",
		// For a standby that was stopped for a while.
		"wal_keep_size = 256MB",
	}
	if err := s.configure(append(append(defaults, settings...), "port = 5432", s.socketSetting())...); err != nil {
		return err
	}
	return s.Restart()
}

// initialise creates the files of an empty database. They need no sync: a crash of
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

func (s *Server) socketSetting() string {
	return "unix_socket_directories = '" + strings.ReplaceAll(s.directory, "'", "''") + "'"
}

// command returns one of the server's programs, to run as the server's user
// without the PG… variables that may be set for other servers.
func (s *Server) command(name string, arguments ...string) *exec.Cmd {
	return s.commandContext(context.Background(), name, arguments...)
}

func (s *Server) commandContext(ctx context.Context, name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(s.binaries, name), arguments...)
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
func (s *Server) ConnString() string { return HostList(s) }

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
