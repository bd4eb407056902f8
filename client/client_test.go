package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const token = "test-token-0123456789"

// newManager returns a registry in memory.
func newManager(t *testing.T, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m, err := relayer.New(memory.New(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// serve serves the registry, and returns a client of it.
func serve(t *testing.T, m *relayer.Manager, options ...client.Option) *client.Client {
	t.Helper()
	return clientOf(t, handlerOf(t, m), options...)
}

func handlerOf(t *testing.T, m *relayer.Manager) http.Handler {
	t.Helper()
	api, err := httpapi.New(m, httpapi.Tokens(token), httpapi.WithoutRateLimit())
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// clientOf returns a client of the handler on a server of its own.
func clientOf(t *testing.T, handler http.Handler, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newClient(t, server.URL, options...)
}

func newClient(t *testing.T, baseURL string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(baseURL, token, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// evm returns a request for a relayer that has every kind of member.
func evm(id string) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: id, Name: "name of " + id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "signer",
		NotificationID: "n", CustomRPCURLs: []relayer.RPCConfig{{URL: "https://rpc.example/v2/secret-key"}},
		Policies: &relayer.EVMPolicy{GasPriceCap: new(relayer.NewAmount(1e18)), WhitelistReceivers: []string{"0x1"}},
	}
}

func TestClient_Registry(t *testing.T) {
	m := newManager(t)
	c := serve(t, m)
	ctx := t.Context()
	created, err := c.Create(ctx, evm("a"))
	if err != nil {
		t.Fatal(err)
	}
	if created.Revision == 0 {
		t.Error("no revision")
	}
	if _, err := c.Patch(ctx, "a", relayer.Patch{"name": "b"}, relayer.IfRevision(created.Revision)); err != nil {
		t.Error(err)
	}
	if _, err := c.Pause(ctx, "a", relayer.IfRevision(created.Revision)); !errors.Is(err, relayer.ErrConflict) {
		t.Error(err)
	}
	if _, err := c.Pause(ctx, "a"); err != nil {
		t.Error(err)
	}
	if _, err := c.Create(ctx, evm("a")); !errors.Is(err, relayer.ErrExists) {
		t.Error(err)
	}
	for i := range 1000 {
		if _, err := m.Create(ctx, evm(fmt.Sprint("r", i))); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for r, err := range c.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		_ = r
		n++
	}
	if n != 1001 {
		t.Error(n)
	}
	if err := c.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Error(err)
	}
}
