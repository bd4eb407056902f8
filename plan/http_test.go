package plan_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
)

const token = "test-token-0123456789"

// serve returns a client of a server.
func serve(t *testing.T, m *relayer.Manager) *client.Client {
	t.Helper()
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	if err != nil {
		t.Fatal(err)
	}
	api := must(httpapi.New(m, authenticate, httpapi.WithRateLimit(0, 0)))(t)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return must(client.New(server.URL, client.WithToken(token), client.WithRetries(2, time.Second)))(t)
}
