//go:build unix

// Package mirror compares views of package mirror with the registries that they follow: over
// every store, in the same process and through a client, with gaps, lost connections and
// restarts of the server.
package mirror

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/tests/internal/child"
)

func TestMain(m *testing.M) {
	child.Main(serveTask)
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const token = "token-of-the-mirror-suite"

func newManager(t testing.TB, store relayer.Store) *relayer.Manager {
	t.Helper()
	return must(relayer.New(store))(t)
}

func newAPI(t testing.TB, manager *relayer.Manager, options ...httpapi.Option) *httpapi.API {
	t.Helper()
	tokens := must(httpapi.Tokens(map[string][]string{"alice": {token}}))(t)
	return must(httpapi.New(manager, tokens, append([]httpapi.Option{httpapi.WithRateLimit(0, 0)}, options...)...))(t)
}

func newClient(t testing.TB, url string, transport *http.Transport, options ...client.Option) *client.Client {
	t.Helper()
	t.Cleanup(transport.CloseIdleConnections)
	options = append([]client.Option{
		client.WithToken(token),
		client.WithHTTPClient(&http.Client{Transport: transport}),
	}, options...)
	return must(client.New(url, options...))(t)
}

func request(id, team string) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: id, Name: id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "signer",
		Labels: map[string]string{"team": team},
	}
}

var patience = flag.Duration("patience", 2*time.Minute, "how long a view may take to converge")

// eventually waits until check returns no problem.
func eventually(t testing.TB, what string, check func() (problem string)) {
	t.Helper()
	deadline := time.Now().Add(*patience)
	for problem := check(); problem != ""; problem = check() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, problem)
		}
		time.Sleep(time.Millisecond)
	}
}

// content returns what a registry has, by ID.
func content(t testing.TB, reader relayer.Reader, selector relayer.Selector) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for r, err := range reader.All(context.Background(), selector) {
		succeed(t, err)
		all[r.ID] = fmt.Sprint(*r)
	}
	return all
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		succeed(t, err)
		return value
	}
}

func succeed(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
