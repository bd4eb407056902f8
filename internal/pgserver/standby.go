//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

const standbyTimeout = time.Minute

// StartPair runs a primary and a synchronous streaming standby until the test
// ends. The settings apply to the primary; the standby starts from a copy.
//
//	primary, standby := pgserver.StartPair(t)
//	store, err := postgres.Open(ctx, pgserver.HostList(primary, standby)+"&target_session_attrs=read-write")
func StartPair(tb testing.TB, settings ...string) (primary, standby *Server) {
	tb.Helper()
	primary = Start(tb, settings...)
	standby, err := allocate()
	if err != nil {
		tb.Fatal(err)
	}
	closeAtEnd(tb, standby)
	if err := standby.Follow(primary); err != nil {
		tb.Fatal(err)
	}
	return primary, standby
}

// Follow replaces the files of a server that is not running with a base backup of
// primary and starts it as a streaming standby. It then sets
// synchronous_standby_names on the primary, so that commits wait for the standby,
// and returns when they do.
//
// For an asynchronous standby, follow with
// primary.Configure("synchronous_standby_names = ”").
func (s *Server) Follow(primary *Server) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postmaster.running() {
		return errRunning
	}
	if err := os.RemoveAll(s.data()); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	backup := s.command("pg_basebackup", "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-h", primary.directory, "-p", "5432", "-U", "postgres")
	if output, err := backup.CombinedOutput(); err != nil {
		return fmt.Errorf("pgserver: pg_basebackup: %w\n%s", err, output)
	}
	err := s.configure(s.socketSetting(), "synchronous_standby_names = ''", "wal_retrieve_retry_interval = 100ms")
	if err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	if err := primary.await("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1"); err != nil {
		return err
	}
	if err := primary.Configure("synchronous_standby_names = '*'"); err != nil {
		return err
	}
	return primary.await("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")
}

// Promote turns a standby into a primary and returns when it accepts writes. Its
// commits wait for no standby until another server follows it. Kill the old
// primary first.
func (s *Server) Promote() error {
	promoted, err := s.query(fmt.Sprintf("SELECT pg_promote(wait_seconds => %d)", int(standbyTimeout.Seconds())))
	if err == nil && promoted != "t" {
		err = fmt.Errorf("pgserver: not promoted within %v:\n%s", standbyTimeout, s.logTail())
	}
	return err
}

// Configure adds lines of postgresql.conf to a running server and returns when
// all of its processes use them. Settings that need a restart take effect with
// the next [Server.Restart].
func (s *Server) Configure(settings ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.postmaster.running() {
		return errNotRunning
	}
	const loaded = "SELECT pg_conf_load_time()"
	before, err := s.query(loaded)
	if err != nil {
		return err
	}
	if err := s.configure(settings...); err != nil {
		return err
	}
	if err := s.postmaster.process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	for deadline := time.Now().Add(standbyTimeout); ; time.Sleep(pollEvery) {
		now, err := s.query(loaded)
		if err != nil {
			return err
		}
		if now != before {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgserver: the settings were not loaded within %v:\n%s", standbyTimeout, s.logTail())
		}
	}
	// The checkpointer enables synchronous replication. It reads the settings before
	// it serves the request.
	_, err = s.query("CHECKPOINT")
	return err
}

// HostList returns the URL of the database postgres on several servers, in the
// form that clients use for failover. Callers append &target_session_attrs=….
func HostList(servers ...*Server) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.directory)
	}
	query := url.Values{"host": {strings.Join(hosts, ",")}, "port": {"5432"}, "sslmode": {"disable"}}
	return "postgres://postgres@/postgres?" + query.Encode()
}

// await repeats a query until it returns a value.
func (s *Server) await(sql, want string) error {
	for deadline := time.Now().Add(standbyTimeout); ; time.Sleep(pollEvery) {
		got, err := s.query(sql)
		if err != nil {
			return err
		}
		if got == want {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgserver: %s returns %q after %v, want %q", sql, got, standbyTimeout, want)
		}
	}
}

// query runs SQL in a new session and returns its output.
func (s *Server) query(sql string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*standbyTimeout)
	defer cancel()
	psql := s.commandContext(ctx, "psql", "-XAtq", "-d", s.ConnString(), "-c", sql)
	output, err := psql.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgserver: %s: %w\n%s", sql, errors.Join(err, ctx.Err()), output)
	}
	return strings.TrimSpace(string(output)), nil
}
