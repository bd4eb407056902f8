//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// operations are all that a Store is asked for.
func operations(store *postgres.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get":  func(ctx context.Context) error { _, err := store.Get(ctx, "one"); return err },
		"List": func(ctx context.Context) error { _, _, err := store.List(ctx, 0, 10); return err },
		"AppendDocument": func(ctx context.Context) error {
			_, _, err := store.AppendDocument(ctx, nil, "one")
			return err
		},
		"AppendDocuments": func(ctx context.Context) error {
			_, _, err := store.AppendDocuments(ctx, nil, 0, 10)
			return err
		},
		"Create": func(ctx context.Context) error { _, err := store.Create(ctx, record("new")); return err },
		"Update": func(ctx context.Context) error {
			rec := record("one")
			rec.Revision = 1
			_, err := store.Update(ctx, rec)
			return err
		},
		"Delete": func(ctx context.Context) error { return store.Delete(ctx, "one", 1) },
		"Import": func(ctx context.Context) error {
			rec := record("imported")
			rec.Revision = 1
			return store.Import(ctx, []relayer.Record{rec})
		},
	}
}

// wantUnavailable wants every operation to end soon and to say why in our words
// alone.
func wantUnavailable(t *testing.T, store *postgres.Store, within time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	for name, call := range operations(store) {
		all.Go(func() {
			begun := time.Now()
			err := call(context.Background())
			if took := time.Since(begun); took > within {
				t.Errorf("%s took %v, want at most %v", name, took, within)
			}
			if !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) {
				t.Errorf("%s: %v, want ErrUnavailable", name, err)
			}
			wantNoDriver(t, name, err)
		})
	}
	all.Wait()
}

func wantNoDriver(t *testing.T, what string, err error) {
	t.Helper()
	var refusal *pgconn.PgError
	var connecting *pgconn.ConnectError
	var parsing *pgconn.ParseConfigError
	if errors.As(err, &refusal) || errors.As(err, &connecting) || errors.As(err, &parsing) {
		t.Errorf("%s: the error is one of the driver's: %v", what, err)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%s: the error has the password in it: %v", what, err)
	}
}

const secret = "hunter2-secret"

// withPassword is a connection string with one that the server does not ask for.
func withPassword(connString string) string {
	return strings.Replace(connString, "postgres@", "postgres:"+secret+"@", 1)
}

// soon is above the connect timeout and what a busy machine adds to it.
const soon = 3 * time.Second

// TestDeadServer kills the server, asks for everything, starts it again, and
// asks again.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	store := openAt(t, withPassword(server.ConnString()))
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	one := create(t, store, record("one"))
	for range 3 {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		err := store.Check(t.Context())
		if !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("Check: %v, want ErrUnavailable", err)
		}
		wantNoDriver(t, "Check", err)
		wantUnavailable(t, store, soon)
		wantServiceUnavailable(t, manager)
		begun := time.Now()
		_, err = postgres.Open(t.Context(), withPassword(server.ConnString()))
		if took := time.Since(begun); !errors.Is(err, relayer.ErrUnavailable) || took > soon {
			t.Errorf("Open: %v after %v, want ErrUnavailable", err, took)
		}
		wantNoDriver(t, "Open", err)
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		if got := get(t, store, "one"); !same(got, one) {
			t.Errorf("got %+v, want %+v", got, one)
		}
		one = update(t, store, one)
	}
	if recs, total, err := store.List(t.Context(), 0, 10); len(recs) != 1 || total != 1 || err != nil {
		t.Errorf("listed %d of %d, error %v; what failed was to write nothing", len(recs), total, err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantServiceUnavailable(t *testing.T, manager *relayer.Manager) {
	t.Helper()
	handler, err := httpapi.New(manager, httpapi.TrustHost())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/api/v1/relayers", ""},
		{"GET", "/api/v1/relayers/one", ""},
		{"POST", "/api/v1/relayers", `{"id":"two","name":"Two","network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"}`},
		{"PATCH", "/api/v1/relayers/one", `{"paused":true}`},
		{"DELETE", "/api/v1/relayers/one", ""},
	} {
		request := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		body, _ := io.ReadAll(response.Body)
		if response.Code != http.StatusServiceUnavailable || response.Header().Get("Retry-After") == "" {
			t.Errorf("%s %s: status %d, Retry-After %q", c.method, c.target, response.Code, response.Header().Get("Retry-After"))
		}
		if text := string(body); strings.Contains(text, secret) || strings.Contains(text, "pgsql") || strings.Contains(text, "dial") {
			t.Errorf("%s %s: the response tells of the server: %s", c.method, c.target, text)
		}
	}
}

// TestStaleConnections: a server that was killed and is back at once has left
// many connections in the pool that are none, and what comes next goes through
// all the same.
func TestStaleConnections(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	const connections = 20
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = connections })
	store := openOn(t, pool)
	one := create(t, store, record("one"))
	for round := range 4 {
		fill(t, pool, connections)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			one = update(t, store, one)
		}
		if got := get(t, store, "one"); !same(got, one) {
			t.Errorf("got %+v, want %+v", got, one)
		}
		one = update(t, store, one)
	}
}

// fill has the pool make all its connections, and use them just now.
func fill(t *testing.T, pool *pgxpool.Pool, connections int) {
	t.Helper()
	var all []*pgxpool.Conn
	for range connections {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	for _, conn := range all {
		conn.Release()
	}
}

// TestPoolExhausted: the host has all connections for itself.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 3 })
	store := openOn(t, pool, newSchema(), postgres.WithConnectTimeout(200*time.Millisecond))
	one := create(t, store, record("one"))
	var held []*pgxpool.Conn
	for range 3 {
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	wantUnavailable(t, store, 200*time.Millisecond+2*time.Second)
	if _, err := postgres.New(t.Context(), pool, newSchema(), postgres.WithConnectTimeout(200*time.Millisecond)); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("New: %v, want ErrUnavailable", err)
	}

	later := inBackground(func() error {
		for {
			_, err := store.Get(t.Context(), "one")
			if !errors.Is(err, relayer.ErrUnavailable) {
				return err
			}
		}
	})
	for _, conn := range held {
		conn.Release()
	}
	if err := <-later; err != nil {
		t.Error(err)
	}
	update(t, store, one)
}

// TestManyWaitForAConnection has more writers wait than there is room for in a
// turn: all are told at the same time, and whoever comes next waits no longer.
func TestManyWaitForAConnection(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 1 })
	store := openOn(t, pool, newSchema(), postgres.WithConnectTimeout(timeout), postgres.WithTimeout(time.Minute))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for range 2 {
		began := time.Now()
		var writers sync.WaitGroup
		for i := range 3000 {
			writers.Go(func() {
				if _, err := store.Create(t.Context(), record(numbered(i))); !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("error %v, want ErrUnavailable", err)
				}
			})
		}
		writers.Wait()
		// A dozen turns would fail one after the other.
		if took := time.Since(began); took > 6*timeout {
			t.Errorf("the last writer was answered after %v", took)
		}
	}
}

// TestWaitsForAConnection: one that is given back within the connect timeout is
// not too late.
func TestWaitsForAConnection(t *testing.T) {
	t.Parallel()
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 1 })
	store := openOn(t, pool, newSchema(), postgres.WithConnectTimeout(10*time.Second))
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	created := inBackground(func() error { _, err := store.Create(context.Background(), record("one")); return err })
	listed := inBackground(func() error { _, _, err := store.List(context.Background(), 0, 10); return err })
	time.Sleep(100 * time.Millisecond)
	conn.Release()
	if err := errors.Join(<-created, <-listed); err != nil {
		t.Error(err)
	}
}

// TestHangingServer: a server that says nothing more is no server, and one that
// goes on is one again.
func TestHangingServer(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	const timeout = 500 * time.Millisecond
	store := openAt(t, withPassword(server.ConnString()), postgres.WithTimeout(timeout), postgres.WithConnectTimeout(200*time.Millisecond))
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	one := create(t, store, record("one"))
	for range 2 {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		// First with connections that were used just now, then with none.
		wantUnavailable(t, store, timeout+soon)
		wantServiceUnavailable(t, manager)
		begun := time.Now()
		_, err := postgres.Open(t.Context(), server.ConnString(), postgres.WithTimeout(timeout), postgres.WithConnectTimeout(200*time.Millisecond))
		if took := time.Since(begun); !errors.Is(err, relayer.ErrUnavailable) || took > timeout+soon {
			t.Errorf("Open: %v after %v, want ErrUnavailable", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begun = time.Now()
		_, err = store.Get(ctx, "one")
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > timeout {
			t.Errorf("Get: %v after %v, want the context's error", err, took)
		}
		cancel()
		if err := server.Continue(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the store goes on", func() bool { _, err := store.Get(t.Context(), "one"); return err == nil })
		one = update(t, store, one)
	}
	if recs, total, err := store.List(t.Context(), 0, 10); len(recs) != 1 || total != 1 || err != nil {
		t.Errorf("listed %d of %d, error %v; what failed was to write nothing", len(recs), total, err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
