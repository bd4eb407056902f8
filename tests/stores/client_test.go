package stores

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
)

const token = "token-of-the-registry-suite"

// newClient returns a client of a server that permits everything within the selector.
func newClient(t *testing.T, manager *relayer.Manager, within relayer.Selector) relayer.Registry {
	t.Helper()
	tokens, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	must(t, err)
	permit := func(context.Context, httpapi.Access) (httpapi.Decision, error) { return httpapi.Allow(within), nil }
	api, err := httpapi.New(manager, tokens, httpapi.WithAuthorizer(permit), httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))
	must(t, err)
	server := httptest.NewUnstartedServer(api)
	server.Config.RegisterOnShutdown(api.Drain)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(server.URL, client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport}))
	must(t, err)
	return c
}
