package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// password occurs nowhere else, so that a search for it finds leaks.
const password = "Secret-5d20c7b19e"

// startPostgres starts a server, or skips the test if PostgreSQL is not installed.
func startPostgres(t *testing.T) *pgserver.Server {
	t.Helper()
	if err := pgserver.Available(); err != nil {
		skipUnlessCI(t, err)
	}
	return pgserver.Start(t)
}

// location returns the URL of a database, with a password that the server does not
// check.
func location(t *testing.T, server *pgserver.Server, database string) string {
	t.Helper()
	parsed, err := url.Parse(server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(parsed.User.Username(), password)
	parsed.Path = "/" + database
	return parsed.String()
}

// query runs a statement in the database.
func query[T any](t *testing.T, location, sql string) (result T) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	if err := connection.QueryRow(t.Context(), sql).Scan(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// executeSQL runs a statement without a result.
func executeSQL(t *testing.T, location, sql string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	if _, err := connection.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func createDatabase(t *testing.T, server *pgserver.Server, name string) string {
	t.Helper()
	executeSQL(t, server.ConnString(), "CREATE DATABASE "+name)
	return location(t, server, name)
}

func expectNoPassword(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, password) {
		t.Errorf("the password is in the output: %s", text)
	}
}

// A change through one server is visible through the other at once.
func TestPostgres_TwoServers(t *testing.T) {
	t.Parallel()
	database := location(t, startPostgres(t), "postgres")
	one := start(t, token, "--db", database, "--rate", "0")
	other := start(t, token, "--db", database, "--rate", "0", "--log-level", "debug")

	var documents []string
	for i, definition := range realRelayers(t) {
		server := one
		if i%2 == 1 {
			server = other
		}
		documents = append(documents, createAll(t, server, []json.RawMessage{definition})...)
	}
	here, there := readAll(t, one, documents), readAll(t, other, documents)
	other.stop()
	expectNoPassword(t, other.output.String())
	other = start(t, token, "--db", strings.Replace(database, "postgres://", "postgresql://", 1), "--rate", "0")
	restarted := readAll(t, other, documents)
	if fmt.Sprint(here) != fmt.Sprint(there) || fmt.Sprint(here) != fmt.Sprint(restarted) {
		t.Errorf("one server has\n%s\nthe other\n%s\nand after a restart\n%s", here, there, restarted)
	}
	_, patched := one.do("PATCH", collection+"/sepolia-example", `{"paused":true}`)
	if _, read := other.do("GET", collection+"/sepolia-example", ""); read != patched {
		t.Errorf("one server returned %s for a patch, and the other reads %s", patched, read)
	}
	if status, body := other.do("DELETE", collection+"/sepolia-example", ""); status != http.StatusOK {
		t.Errorf("delete returned %d: %s", status, body)
	}
	if status, _ := one.do("GET", collection+"/sepolia-example", ""); status != http.StatusNotFound {
		t.Errorf("get of a relayer that the other server deleted returned %d", status)
	}
	one.stop()
	other.stop()
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

// While the database is down, requests get 503. After it has restarted they succeed.
func TestPostgres_DatabaseRestarts(t *testing.T) {
	t.Parallel()
	postgres := startPostgres(t)
	database := location(t, postgres, "postgres")
	server := start(t, token, "--db", database)
	documents := createAll(t, server, realRelayers(t))
	const definition = `{"id":"late","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`

	if err := postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, request := range [][3]string{
		{"GET", collection, ""},
		{"GET", collection + "/sepolia-example", ""},
		{"POST", collection, definition},
		{"PATCH", collection + "/sepolia-example", `{"paused":true}`},
		{"DELETE", collection + "/sepolia-example", ""},
		{"GET", "/healthz/ready", ""},
	} {
		if status, body := server.do(request[0], request[1], request[2]); status != http.StatusServiceUnavailable {
			t.Errorf("without its database, status %d for %s: %s", status, request, body)
		}
	}
	if status, _ := server.do("GET", "/healthz/live", ""); status != http.StatusOK {
		t.Errorf("without its database the server is not live: %d", status)
	}

	if err := postgres.Restart(); err != nil {
		t.Fatal(err)
	}
	server.awaitReadiness(http.StatusOK)
	readAll(t, server, documents)
	if status, body := server.do("POST", collection, definition); status != http.StatusCreated {
		t.Errorf("create returned %d: %s", status, body)
	}

	// A database that does not respond counts as unavailable.
	if err := postgres.Pause(); err != nil {
		t.Fatal(err)
	}
	server.awaitReadiness(http.StatusServiceUnavailable)
	if err := postgres.Continue(); err != nil {
		t.Fatal(err)
	}
	server.awaitReadiness(http.StatusOK)
	server.stop()
	expectNoPassword(t, server.output.String())
}

// A server whose role may only read is not ready: it serves reads, and each write is a fault.
func TestPostgres_RoleWithoutWrites(t *testing.T) {
	t.Parallel()
	database := location(t, startPostgres(t), "postgres")
	start(t, token, "--db", database).stop()
	const grants = `GRANT %s ON ALL TABLES IN SCHEMA relayer TO reader`
	for _, sql := range []string{`CREATE ROLE reader LOGIN`, `GRANT USAGE ON SCHEMA relayer TO reader`, fmt.Sprintf(grants, "SELECT")} {
		executeSQL(t, database, sql)
	}
	server := start(t, token, "--db", strings.Replace(database, "postgres:"+password, "reader:"+password, 1))
	server.awaitReadiness(http.StatusServiceUnavailable)
	server.expectStatus("GET", collection, token, "", http.StatusOK)
	server.expectStatus("POST", collection, token, definition, http.StatusInternalServerError)
	executeSQL(t, database, fmt.Sprintf(grants, "INSERT, UPDATE, DELETE"))
	server.awaitReadiness(http.StatusOK)
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	executeSQL(t, database, `ALTER TABLE relayer.relayers ENABLE ROW LEVEL SECURITY`)
	executeSQL(t, database, `CREATE POLICY reading ON relayer.relayers FOR SELECT USING (true)`)
	server.awaitReadiness(http.StatusServiceUnavailable)
	server.expectStatus("PATCH", collection+"/r-1", token, `{"name":"renamed"}`, http.StatusInternalServerError)
	server.stop()
	output := server.output.String()
	for _, want := range []string{"(SQLSTATE 42501)", "PostgreSQL did not store the row: a trigger or row-level security dropped it"} {
		if !strings.Contains(output, want) {
			t.Errorf("the log does not have %s: %s", want, output)
		}
	}
}

// Each problem of a database is one line without the password.
func TestDatabase_FailedStart(t *testing.T) {
	t.Parallel()
	postgres := startPostgres(t)
	good, empty, fresh := location(t, postgres, "postgres"), createDatabase(t, postgres, "empty"), filepath.Join(t.TempDir(), "fresh.db")
	for location, want := range map[string]string{
		"postgres://u:" + password + "@127.0.0.1:1/x":               "connection refused",
		location(t, postgres, "nowhere"):                            `database "nowhere" does not exist`,
		"postgres://u:" + password + "@localhost:port/x":            "connection string",
		"postgres://u:a/" + password + "@localhost:1/x":             "connection string",
		"postgres://u:" + password + "@localhost/x?sslmode=perhaps": "connection string",
	} {
		expectFailedStart(t, want, "--db", location)
	}
	expectFailure(t, "--from: postgres: schema relayer: no relayer schema", "copy", "--to", good, "--from", empty)
	expectFailure(t, "--from: store unavailable", "copy", "--to", fresh, "--from", "postgres://u:"+password+"@127.0.0.1:1/x")
	expectFiles(t, filepath.Dir(fresh))
	if tables := query[int](t, empty, "SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname NOT IN ('public', 'information_schema')"); tables != 0 {
		t.Errorf("%d schemas were created in a source", tables)
	}
}
