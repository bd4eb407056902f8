package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// sharedPostgres is the server of the tests that do not stop it. TestMain closes it.
var sharedPostgres struct {
	sync.Mutex
	server    *pgserver.Server
	databases atomic.Int64
}

// newDatabase returns the URL of an empty database.
func newDatabase(t *testing.T) string {
	t.Helper()
	requirePostgres(t)
	sharedPostgres.Lock()
	defer sharedPostgres.Unlock()
	if sharedPostgres.server == nil {
		server := mustGet(pgserver.New("max_connections = 300"))(t)
		sharedPostgres.server = server
	}
	name := fmt.Sprint("test", sharedPostgres.databases.Add(1))
	connection := mustGet(pgx.Connect(t.Context(), sharedPostgres.server.ConnString()))(t)
	defer connection.Close(context.Background())
	mustGet(connection.Exec(t.Context(), "CREATE DATABASE "+name))(t)
	return location(t, sharedPostgres.server, name)
}

func requirePostgres(t *testing.T) {
	t.Helper()
	if err := pgserver.Available(); err != nil {
		skipUnlessCI(t, err)
	}
}

// location returns the URL of a database, with a password that the server does not
// check.
func location(t *testing.T, server *pgserver.Server, database string) string {
	t.Helper()
	parsed := mustGet(url.Parse(server.ConnString()))(t)
	parsed.User = url.UserPassword(parsed.User.Username(), password)
	parsed.Path = "/" + database
	return parsed.String()
}

// query runs a statement in the database.
func query[T any](t *testing.T, location, sql string) (result T) {
	t.Helper()
	connection := mustGet(pgx.Connect(t.Context(), location))(t)
	defer connection.Close(context.Background())
	must(t, connection.QueryRow(t.Context(), sql).Scan(&result))
	return result
}

// awaitReadiness waits until the readiness check returns a status.
func (p *process) awaitReadiness(want int) {
	p.t.Helper()
	status := 0
	isWanted := func() bool {
		status, _ = p.do("GET", "/healthz/ready", "")
		return status == want
	}
	if !await(isWanted) {
		p.t.Fatalf("readiness is %d, want %d: %s", status, want, p.output)
	}
}

// While the database is down, requests get 503. After it has restarted they succeed, and changed keys
// are read.
func TestPostgres_DatabaseRestarts(t *testing.T) {
	t.Parallel()
	requirePostgres(t)
	postgres, keys := pgserver.Start(t), keysFileIn(t, t.TempDir())
	database := strings.Replace(location(t, postgres, "postgres"), "postgres://", "postgresql://", 1)
	server := start(t, token, "--db", database, "--keys", keys, "--log-level", "debug")
	const one = collection + "/a"
	server.expect("POST", collection, token, sealedURL("a"), http.StatusCreated)
	must(t, postgres.Kill())
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	for _, request := range [][3]string{
		{"GET", collection, ""}, {"GET", one, ""}, {"POST", collection, definition}, {"PATCH", one, `{"paused":true}`}, {"DELETE", one, ""}, {"GET", "/healthz/ready", ""},
	} {
		server.expect(request[0], request[1], token, request[2], http.StatusServiceUnavailable)
	}
	server.expect("GET", "/healthz/live", token, "", http.StatusOK)
	const notReloaded = `stays in use" flag=--keys`
	server.output.awaitText(t, notReloaded, 1)
	must(t, postgres.Restart())
	server.awaitReadiness(http.StatusOK)
	server.output.awaitText(t, "stored=1 primary=k2", 1)
	server.expect("GET", one, token, "", http.StatusOK)
	server.expect("POST", collection, token, definition, http.StatusCreated)

	// A database that does not respond counts as unavailable.
	must(t, postgres.Pause())
	server.awaitReadiness(http.StatusServiceUnavailable)
	must(t, postgres.Continue())
	server.awaitReadiness(http.StatusOK)
	server.stop()
}

// Each problem of a database is one line without the password.
func TestPostgres_FailedStart(t *testing.T) {
	t.Parallel()
	empty, fresh := newDatabase(t), filepath.Join(t.TempDir(), "fresh.db")
	for location, want := range map[string]string{
		"postgres://u:" + password + "@127.0.0.1:1/x":               "connection refused",
		strings.Replace(empty, "/test", "/nowhere", 1):              "does not exist",
		"postgres://u:" + password + "@localhost:port/x":            "connection string",
		"postgres://u:a/" + password + "@localhost:1/x":             "connection string",
		"postgres://u:" + password + "@localhost/x?sslmode=perhaps": "connection string",
	} {
		expectFailure(t, want, "serve", "--addr", "127.0.0.1:0", "--db", location)
	}
	expectFailure(t, "--from: postgres: schema relayer: no relayer schema", "copy", "--to", fresh, "--from", empty)
	expectFailure(t, "--db: postgres: schema relayer: no relayer schema", "check", "--db", empty)
	expectFiles(t, filepath.Dir(fresh))
	if tables := query[int](t, empty, "SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname NOT IN ('public', 'information_schema')"); tables != 0 {
		t.Errorf("%d schemas were created in a source", tables)
	}
}

// A flag of a server sets its part of the retention of a database for all servers. A server without
// it and a command change nothing.
func TestPostgres_HistoryRetention(t *testing.T) {
	t.Parallel()
	database := newDatabase(t)
	const retention = `SELECT concat_ws(' ', history_changes, history_age / 3600000000) FROM relayer.pruning`
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "1000 2160"}, {[]string{"--history", "8760h"}, "1000 8760"}, {nil, "1000 8760"}, {[]string{"--history", "0"}, "1000 0"}} {
		start(t, token, append([]string{"--db", database}, c.flags...)...).stop()
		expect(t, 0, "check", "--db", database)
		if got := query[string](t, database, retention); got != c.want {
			t.Errorf("serve %v: retention %s, want %s", c.flags, got, c.want)
		}
	}
	server := start(t, token, "--db", database)
	server.expect("GET", collection+":history", token, "", http.StatusNotFound)
	server.stop()
}
