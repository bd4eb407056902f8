//go:build unix

package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

const token = "token-of-the-client-suite"

// suite are the tests of one store. open returns a new one.
func suite(t *testing.T, open func(t *testing.T) relayer.Store) {
	tests := map[string]func(*system){
		"creates":               testCreates,
		"creates of the same":   testSameID,
		"conditional patches":   testConditionalPatches,
		"unconditional patches": testUnconditionalPatches,
		"deletes":               testDeletes,
		"reads":                 testReads,
		"watch":                 testWatch,
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) { run(newSystem(t, open(t))) })
	}
}

func TestFaults_Memory(t *testing.T) {
	suite(t, func(*testing.T) relayer.Store { return memory.New() })
}

func TestFaults_Bolt(t *testing.T) {
	suite(t, func(t *testing.T) relayer.Store {
		store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		return store
	})
}

func TestFaults_Postgres(t *testing.T) {
	server, schemas := pgserver.Start(t), 0
	suite(t, func(t *testing.T) relayer.Store {
		schemas++
		return pgtest.Open(t, server.ConnString(), postgres.WithSchema(fmt.Sprint("client_", schemas)))
	})
}

// system is a server, and a proxy in front of it.
type system struct {
	t       *testing.T
	manager *relayer.Manager // without HTTP
	proxy   *proxy
	server  *httptest.Server
}

func newSystem(t *testing.T, store relayer.Store) *system {
	t.Helper()
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	s := &system{t: t, manager: manager, proxy: startProxy(t)}
	s.start()
	t.Cleanup(func() { s.server.Close() })
	return s
}

func (s *system) start() {
	api, err := httpapi.New(s.manager, httpapi.Tokens(token), httpapi.WithoutRateLimit())
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = httptest.NewServer(api)
	s.proxy.target.Store(s.server.URL)
}

// restart ends the server for a moment, with all its connections.
func (s *system) restart() {
	s.server.CloseClientConnections()
	s.server.Close()
	time.Sleep(50 * time.Millisecond)
	s.start()
}

// client returns a client with new connections, which go through the proxy.
func (s *system) client(options ...client.Option) *client.Client {
	s.t.Helper()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	options = append([]client.Option{
		client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithTimeout(2 * time.Second),
		client.WithRetries(4, 10*time.Second),
	}, options...)
	c, err := client.New(s.proxy.url, token, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}
