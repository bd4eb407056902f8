//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
)

// ResetAlways makes PgBouncer reset a server connection after every transaction, also in
// transaction mode. Without it, PgBouncer 1.18 to 1.20 can crash if a notification for a client
// that is gone arrives while a query is canceled.
const ResetAlways = "server_reset_query_always = 1"

// StartPgBouncer runs PgBouncer in front of the server until the test ends and returns the URL of
// the database postgres through it. The pool mode is session, transaction or statement, and
// settings are further lines of its configuration. It skips the test if the machine has no
// PgBouncer; in CI without -short it fails it.
func StartPgBouncer(tb testing.TB, server *Server, poolMode string, settings ...string) (connString string) {
	tb.Helper()
	path, err := findPgBouncer()
	require(tb, err)
	directory, err := process.MakeDirectory(server.account)
	must(tb, err)
	tb.Cleanup(func() { os.RemoveAll(directory) })
	users, config, log := filepath.Join(directory, "users"), filepath.Join(directory, "config"), filepath.Join(directory, "log")
	for file, lines := range map[string][]string{
		users: {`"postgres" ""`},
		config: {
			"[databases]", "postgres = host=" + server.directory,
			"[pgbouncer]", "unix_socket_dir = " + directory, "listen_port = 5432",
			"auth_type = trust", "auth_file = " + users, "pool_mode = " + poolMode, "max_client_conn = 500", strings.Join(settings, "\n"),
		},
	} {
		must(tb, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	bouncer, err := process.Start(process.Command(server.account, directory, path, config), log)
	must(tb, err)
	tb.Cleanup(func() {
		if !bouncer.Running() {
			tb.Errorf("PgBouncer has ended:\n%s", process.Tail(log))
		}
		_ = syscall.Kill(bouncer.PID, syscall.SIGTERM)
		<-bouncer.Exited
	})
	err = process.Await("ready", func() (bool, error) {
		if !bouncer.Running() {
			return false, errors.New("pgserver: PgBouncer ended at its start")
		}
		conn, err := net.Dial("unix", filepath.Join(directory, ".s.PGSQL.5432"))
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		tb.Fatalf("%v\n%s", err, process.Tail(log))
	}
	return urlOf(directory)
}

func findPgBouncer() (string, error) {
	// Debian's path is not on the PATH of every user.
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("pgserver: no PgBouncer on this machine: install it (Debian: pgbouncer)")
}

// urlOf returns the URL of the database postgres on hosts that are named by
// the directories of their sockets.
func urlOf(hosts ...string) string {
	query := url.Values{"host": {strings.Join(hosts, ",")}, "port": {"5432"}, "sslmode": {"disable"}}
	return fmt.Sprintf("postgres://postgres@/postgres?%s", query.Encode())
}
