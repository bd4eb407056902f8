//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
)

// StartPair runs a primary and a synchronous streaming standby until the test
// ends. The settings apply to both: the standby starts from a copy.
//
//	primary, standby := pgserver.StartPair(t)
//	store, err := postgres.Open(ctx, pgserver.HostList(primary, standby)+"&target_session_attrs=primary")
func StartPair(tb testing.TB, settings ...string) (primary, standby *Server) {
	tb.Helper()
	primary = Start(tb, settings...)
	standby, err := allocate()
	must(tb, err)
	closeAtEnd(tb, standby)
	must(tb, standby.Follow(primary))
	return primary, standby
}

// Follow replaces the files of a server that is not running with a base backup of
// primary and starts it as a streaming standby. It then sets
// synchronous_standby_names on the primary, so that commits wait for the standby,
// and returns when they do.
//
// The standby is asynchronous after
//
//	primary.Configure("synchronous_standby_names = ''")
func (s *Server) Follow(primary *Server) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeSharedMemory()
	if err := os.RemoveAll(s.data()); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	if err := s.copyRunning(primary); err != nil {
		return err
	}
	err := s.configure(s.socketSetting(), "synchronous_standby_names = ''", "wal_retrieve_retry_interval = 100ms",
		"primary_conninfo = 'host="+primary.directory+" user=postgres'")
	if err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	if err := primary.awaitQuery("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1"); err != nil {
		return err
	}
	if err := primary.Configure("synchronous_standby_names = '*'"); err != nil {
		return err
	}
	return primary.awaitQuery("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")
}

// copyRunning copies the files of a running server, as pg_basebackup does, which not every
// distribution of the server has. The standby streams the write-ahead log from the primary.
func (s *Server) copyRunning(primary *Server) error {
	conn, err := primary.connect()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := ask(conn, "SELECT pg_backup_start('standby', true)"); err != nil {
		return err
	}
	archive := filepath.Join(s.directory, "base.tar")
	defer func() { _ = os.Remove(archive) }()
	// The status is 1 if files have changed meanwhile.
	err = run(process.Command(s.account, s.directory, "/bin/tar", "-C", primary.directory, "-cf", archive,
		"--exclude=data/pg_wal/*", "--exclude=data/pg_dynshmem/*", "--exclude=data/postmaster.*", "data"))
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return err
	}
	label, err := ask(conn, "SELECT labelfile FROM pg_backup_stop(false)")
	if err != nil {
		return err
	}
	if err := run(process.Command(s.account, s.directory, "/bin/tar", "-C", s.directory, "-xpf", archive)); err != nil {
		return err
	}
	return errors.Join(s.addFile("backup_label", label), s.addFile("standby.signal", ""))
}

// addFile creates a file of the user of the server among its data.
func (s *Server) addFile(name, content string) error {
	add := process.Command(s.account, s.directory, "/usr/bin/tee", filepath.Join(s.data(), name))
	add.Stdin = strings.NewReader(content)
	return run(add)
}

// Promote turns a standby into a primary and returns when it accepts writes. Its
// commits wait for no standby until another server follows it. Kill the old
// primary first.
func (s *Server) Promote() error {
	limit := strconv.Itoa(int(process.WaitLimit.Seconds()))
	return s.whileRunning(func(int) error {
		return run(s.command("pg_ctl", "promote", "-D", s.data(), "-w", "-t", limit))
	})
}

// Configure adds lines of postgresql.conf to a running server and returns when
// new statements use them. Settings that need a restart take effect with the next
// [Server.Restart].
func (s *Server) Configure(settings ...string) error {
	return s.whileRunning(func(pid int) error {
		const loaded = "SELECT pg_conf_load_time()"
		before, err := s.query(loaded)
		if err != nil {
			return err
		}
		if err := s.configure(settings...); err != nil {
			return err
		}
		_ = syscall.Kill(pid, syscall.SIGHUP)
		err = process.Await("configured", func() (bool, error) {
			now, err := s.query(loaded)
			return now != before, err
		})
		if err != nil {
			return err
		}
		// The checkpointer enables synchronous replication. It reads the settings before
		// it serves the request.
		_, err = s.query("CHECKPOINT")
		return err
	})
}

// HostList returns the URL of the database postgres on several servers, the form
// that clients use for failover. Callers append &target_session_attrs=….
func HostList(servers ...*Server) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.directory)
	}
	return urlOf(hosts...)
}

// awaitQuery polls in one session: a new one takes longer than most of what it awaits.
func (s *Server) awaitQuery(sql, want string) error {
	_, err := s.query(fmt.Sprintf(`DO $$ BEGIN
		FOR attempt IN 1..%d LOOP
			EXIT WHEN (%s) = %s;
			IF attempt = %[1]d THEN RAISE 'not within the limit'; END IF;
			PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01);
		END LOOP;
	END $$`, process.WaitLimit/(10*time.Millisecond), sql, want))
	return err
}
