package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer/internal/pgserver"
)

// password is unlike anything else, so that finding it anywhere means something.
const password = "Secret-5d20c7b19e"

// startPostgres skips where there is no PostgreSQL, except in CI, which has one.
func startPostgres(t *testing.T) *pgserver.Server {
	t.Helper()
	if err := pgserver.Available(); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	return pgserver.Start(t)
}

// location is the URL of a server's database, with a password in it that the
// server does not ask for.
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

// query asks the database itself.
func query[T any](t *testing.T, location, sql string) (answer T) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	if err := connection.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func makeDatabase(t *testing.T, server *pgserver.Server, name string) string {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), server.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	if _, err := connection.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return location(t, server, name)
}

func expectNoPassword(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, password) {
		t.Errorf("the password is in the output: %s", text)
	}
}

func TestPostgresKeepsRelayers(t *testing.T) {
	database := location(t, startPostgres(t), "postgres")
	server := start(t, token, "--db", database, "--log-requests")
	documents := createAll(t, server, realRelayers(t))
	before := readAll(t, server, documents)
	server.stop()
	expectNoPassword(t, server.output.String())

	again := start(t, token, "--db", strings.Replace(database, "postgres://", "postgresql://", 1))
	after := readAll(t, again, documents)
	for path, body := range before {
		if after[path] != body {
			t.Errorf("%s was\n%s\nand is after a restart\n%s", path, body, after[path])
		}
	}
	again.stop()
}

// What one server has answered, the other knows.
func TestServersShareADatabase(t *testing.T) {
	database := location(t, startPostgres(t), "postgres")
	one := start(t, token, "--db", database, "--rate", "0")
	other := start(t, token, "--db", database, "--rate", "0")

	var documents []string
	for i, definition := range realRelayers(t) {
		server := one
		if i%2 == 1 {
			server = other
		}
		documents = append(documents, createAll(t, server, []json.RawMessage{definition})...)
	}
	if here, there := readAll(t, one, documents), readAll(t, other, documents); fmt.Sprint(here) != fmt.Sprint(there) {
		t.Errorf("one server has\n%s\nand the other\n%s", here, there)
	}
	_, patched := one.do("PATCH", collection+"/sepolia-example", `{"paused":true}`)
	if _, read := other.do("GET", collection+"/sepolia-example", ""); read != patched {
		t.Errorf("one server answered a patch with %s, and the other reads %s", patched, read)
	}
	if status, body := other.do("DELETE", collection+"/sepolia-example", ""); status != http.StatusOK {
		t.Errorf("a delete was answered %d: %s", status, body)
	}
	if status, _ := one.do("GET", collection+"/sepolia-example", ""); status != http.StatusNotFound {
		t.Errorf("a relayer deleted through one server was answered %d by the other", status)
	}
	one.stop()
	other.stop()
}

// Of racing creates exactly one gets an id, and exactly one a signer, whichever
// servers they go through.
func TestServersRace(t *testing.T) {
	database := location(t, startPostgres(t), "postgres")
	servers := []*process{
		start(t, token, "--db", database, "--exclusive-signers"),
		start(t, token, "--db", database, "--exclusive-signers"),
	}
	const racers = 16
	for name, definition := range map[string]string{
		"id":     `{"id":"one","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s-%d"}`,
		"signer": `{"name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"one"}%.0d`,
	} {
		statuses := make([]int, racers)
		var racing sync.WaitGroup
		for i := range racers {
			racing.Go(func() { statuses[i], _ = servers[i%2].do("POST", collection, fmt.Sprintf(definition, i)) })
		}
		racing.Wait()
		created := 0
		for _, status := range statuses {
			switch status {
			case http.StatusCreated:
				created++
			case http.StatusConflict, http.StatusBadRequest:
			default:
				t.Errorf("%s: a create was answered %d", name, status)
			}
		}
		if created != 1 {
			t.Errorf("%s: %d of %d creates succeeded", name, created, racers)
		}
	}
	for _, server := range servers {
		server.stop()
	}
}

// awaitReadiness waits until the server is asked whether it is ready and answers
// with the status.
func (p *process) awaitReadiness(want int) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		status, _ := p.do("GET", "/healthz/ready", "")
		if status == want {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the server answers %d and not %d: %s", status, want, p.output)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A server outlives its database: it says that it cannot serve, and goes on once
// it can.
func TestDatabaseIsKilled(t *testing.T) {
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
			t.Errorf("without its database the server answered %d to %s: %s", status, request, body)
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
		t.Errorf("a create was answered %d: %s", status, body)
	}

	// A database that hangs is one that is away.
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

// What is wrong with the database or with how it is named is one clear line in
// which nobody finds the password.
func TestWrongDatabase(t *testing.T) {
	postgres := startPostgres(t)
	good := location(t, postgres, "postgres")
	bolt := filepath.Join(t.TempDir(), "relayers.db")
	start(t, token, "--db", bolt).stop()
	stranger := makeDatabase(t, postgres, "stranger")
	nowhere, fresh := filepath.Join(t.TempDir(), "nowhere.db"), filepath.Join(t.TempDir(), "fresh.db")

	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no server":            {[]string{"--db", "postgres://u:" + password + "@127.0.0.1:1/x"}, "connection refused"},
		"no such database":     {[]string{"--db", location(t, postgres, "nowhere")}, `database "nowhere" does not exist`},
		"port not a number":    {[]string{"--db", "postgres://u:" + password + "@localhost:port/x"}, "connection string"},
		"odd password":         {[]string{"--db", "postgres://u:%zz" + password + "@localhost/x"}, "connection string"},
		"slash in password":    {[]string{"--db", "postgres://u:a/" + password + "@localhost:1/x"}, "connection string"},
		"unknown setting":      {[]string{"--db", "postgres://u:" + password + "@localhost/x?sslmode=perhaps"}, "connection string"},
		"another scheme":       {[]string{"--db", "mysql://u:" + password + "@localhost/x"}, "--db must be a file, or a URL that begins with postgres://"},
		"keywords":             {[]string{"--db", "host=localhost password=" + password}, "--db must be a file, or a URL that begins with postgres://"},
		"no flag":              {[]string{good}, "unexpected argument"},
		"no source":            {[]string{"--db", fresh, "--copy-from", nowhere}, "nowhere.db: no such file or directory"},
		"directory as source":  {[]string{"--db", good, "--copy-from", t.TempDir()}, "--copy-from"},
		"memory as source":     {[]string{"--db", good, "--copy-from", "memory"}, "--copy-from must be a file or a postgres:// URL"},
		"another source":       {[]string{"--db", good, "--copy-from", "mysql://u:" + password + "@localhost/x"}, "--copy-from must be a file"},
		"file on itself":       {[]string{"--db", bolt, "--copy-from", filepath.Dir(bolt) + "/./relayers.db"}, "--copy-from is the same as --db"},
		"database on itself":   {[]string{"--db", good, "--copy-from", strings.Replace(good, "postgres://postgres", "postgresql://another", 1)}, "--copy-from is the same as --db"},
		"source without them":  {[]string{"--db", good, "--copy-from", stranger}, "--copy-from: postgres: schema relayer: no relayer schema"},
		"source out of reach":  {[]string{"--db", good, "--copy-from", "postgres://u:" + password + "@127.0.0.1:1/x"}, "--copy-from: store unavailable"},
		"password in a source": {[]string{"--db", good, "--copy-from", "postgres://u:%zz" + password + "@localhost/x"}, "connection string"},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, c.says, c.args...)
		})
	}
	for _, file := range []string{nowhere, fresh} {
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("%s has been made: %v", file, err)
		}
	}
	if tables := query[int](t, stranger, "SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' AND nspname NOT IN ('public', 'information_schema')"); tables != 0 {
		t.Errorf("%d schemas were made in a database that is only a source", tables)
	}
}
