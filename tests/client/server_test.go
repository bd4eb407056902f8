//go:build unix

package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/faultproxy"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

const token = "token-of-the-client-suite"

// start runs a test on a new store, in parallel to others: they mostly wait.
func start(t *testing.T, name string, open func(t *testing.T) relayer.Store, run func(*system)) {
	t.Run(name, func(t *testing.T) {
		s := newSystem(t, open(t))
		t.Parallel()
		run(s)
	})
}

// writes are the tests that compare the outcomes of writes with the content of the store.
var writes = map[string]func(*system){
	"creates":             testCreates,
	"conditional patches": testConditionalPatches,
	"updates":             testUpdates,
	"deletes":             testDeletes,
}

func TestFaults(t *testing.T) {
	newMemory := func(*testing.T) relayer.Store { return memory.New() }
	newUncertain := func(*testing.T) relayer.Store { return &uncertain{Store: memory.New()} }
	for name, run := range writes {
		start(t, name, newMemory, run)
		start(t, name+", uncertain", newUncertain, run)
	}
	start(t, "watch", newMemory, testWatch)
}

// The faults of a client do not depend on the store, except for the positions of a feed and the
// duration of a write.
func TestFaults_Postgres(t *testing.T) {
	server, schemas := pgserver.Start(t), 0
	open := func(t *testing.T) relayer.Store {
		schemas++
		return pgtest.Open(t, server.ConnString(), postgres.WithSchema(fmt.Sprint("client_", schemas)))
	}
	start(t, "updates", open, testUpdates)
	start(t, "watch", open, testWatch)
}

// system is a server, and a proxy in front of it.
type system struct {
	t       *testing.T
	manager *relayer.Manager // without HTTP
	proxy   *faultproxy.Proxy

	isUncertain bool
}

func newSystem(t *testing.T, store relayer.Store) *system {
	t.Helper()
	manager := must(relayer.New(store))(t)
	s := &system{t: t, manager: manager}
	unsure, isUncertain := store.(*uncertain)
	s.isUncertain = isUncertain
	s.proxy = faultproxy.Start(t, s.newServer())
	if isUncertain {
		unsure.rate = &s.proxy.Rate
	}
	return s
}

func (s *system) newServer() http.Handler {
	if s.isUncertain {
		return withDeadline(newAPI(s.t, s.manager))
	}
	return newAPI(s.t, s.manager)
}

// failer is a test, or a check of package rapid.
type failer interface {
	Helper()
	Fatal(...any)
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func newAPI(t failer, manager *relayer.Manager) *httpapi.API {
	t.Helper()
	tokens := must(httpapi.Tokens(map[string][]string{"alice": {token}}))(t)
	return must(httpapi.New(manager, tokens, httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0)))(t)
}

// restart ends the server for a moment, with all its connections.
func (s *system) restart() {
	s.proxy.Stop()
	time.Sleep(50 * time.Millisecond)
	s.proxy.Serve(s.newServer())
}

// client returns a client with new connections, which go through the proxy.
func (s *system) client(options ...client.Option) *client.Client {
	s.t.Helper()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	options = append([]client.Option{
		client.WithToken(token),
		client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithTimeout(2 * time.Second),
		client.WithRetries(16, time.Minute),
	}, options...)
	return must(client.New(s.proxy.URL(), options...))(s.t)
}

// uncertain is a store that fails: it is unavailable, or it reports an unknown outcome
// of a write that took effect or did not.
type uncertain struct {
	relayer.Store
	rate *atomic.Int64 // failures per 1,000 writes
}

// deadline is that of the requests to a server with an uncertain store.
const deadline = 20 * time.Millisecond

func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deadline)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (s *uncertain) write(ctx context.Context, run func() error) error {
	if rand.Int64N(1000) >= s.rate.Load() {
		return run()
	}
	kind := rand.IntN(5)
	if kind == 0 {
		return fmt.Errorf("%w: a failure of the test", relayer.ErrUnavailable)
	}
	if kind < 3 { // it takes effect
		if err := run(); err != nil {
			return err
		}
	}
	if kind%2 == 0 { // the failure is noticed late, as a deadline of the host
		<-ctx.Done()
		return fmt.Errorf("%w: %w", relayer.ErrOutcomeUnknown, ctx.Err())
	}
	return fmt.Errorf("%w: a failure of the test", relayer.ErrOutcomeUnknown)
}

func (s *uncertain) Create(ctx context.Context, rec relayer.Record) (created relayer.Record, err error) {
	err = s.write(ctx, func() error { created, err = s.Store.Create(ctx, rec); return err })
	return created, err
}

func (s *uncertain) Update(ctx context.Context, rec relayer.Record) (updated relayer.Record, err error) {
	err = s.write(ctx, func() error { updated, err = s.Store.Update(ctx, rec); return err })
	return updated, err
}

func (s *uncertain) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.write(ctx, func() error { return s.Store.Delete(ctx, id, revision, note) })
}
