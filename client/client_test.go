package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const token = "test-token-0123456789"

// newManager returns a registry in memory.
func newManager(t *testing.T, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	return must(relayer.New(memory.New(), options...))(t)
}

// serve serves the registry, and returns a client of it.
func serve(t *testing.T, m *relayer.Manager, options ...client.Option) *client.Client {
	t.Helper()
	return clientOf(t, handlerOf(t, m), options...)
}

func handlerOf(t *testing.T, m *relayer.Manager, options ...httpapi.Option) http.Handler {
	t.Helper()
	authenticate := must(httpapi.Tokens(map[string][]string{"alice": {token}}))(t)
	return must(httpapi.New(m, authenticate, append(options, httpapi.WithRateLimit(0, 0))...))(t)
}

// clientOf returns a client of the handler on a new server.
func clientOf(t *testing.T, handler http.Handler, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return newClient(t, server.URL, options...)
}

func newClient(t *testing.T, baseURL string, options ...client.Option) *client.Client {
	t.Helper()
	return must(client.New(baseURL, append([]client.Option{client.WithToken(token)}, options...)...))(t)
}

// evm returns a request for a relayer that has every kind of member.
func evm(id string) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: id, Name: "name of " + id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "signer",
		NotificationID: "n", CustomRPCURLs: []relayer.RPCConfig{{URL: "https://rpc.example/v2/secret-key"}},
		Policy: &relayer.EVMPolicy{GasPriceCap: new(relayer.Ether(1)), WhitelistReceivers: []string{"0x1"}},
	}
}

func TestNew_Arguments(t *testing.T) {
	type options = []client.Option
	tests := map[string]struct {
		url, token string
		options    options
		isValid    bool
	}{
		"https":                    {"https://relayers.example", token, nil, true},
		"a prefix and a port":      {"https://relayers.example:8443/a/b%20c/", token, nil, true},
		"local":                    {"http://localhost:8080", token, nil, true},
		"local IPv4":               {"http://127.1.2.3", token, nil, true},
		"local IPv6":               {"http://[::1]:80", token, nil, true},
		"insecure":                 {"http://relayers.example", token, nil, false},
		"insecure, not local":      {"http://localhost.example", token, nil, false},
		"insecure, permitted":      {"http://relayers.example", token, options{client.WithInsecureHTTP()}, true},
		"credentials":              {"https://user:hunter2@relayers.example", token, nil, false},
		"credentials, no URL":      {"https://user:hunter2@relayers.example:port", token, nil, false},
		"a query":                  {"https://relayers.example?key=hunter2", token, nil, false},
		"an empty query":           {"https://relayers.example?", token, nil, false},
		"a fragment":               {"https://relayers.example#hunter2", token, nil, false},
		"no host":                  {"https:///api", token, nil, false},
		"no scheme":                {"relayers.example", token, nil, false},
		"another scheme":           {"ftp://relayers.example", token, nil, false},
		"no token":                 {"https://relayers.example", "", nil, false},
		"a token with a line":      {"https://relayers.example", "hunter2\n", nil, false},
		"a token that is not text": {"https://relayers.example", "hunter2é", nil, false},
		"empty option":             {"https://relayers.example", token, options{{}}, false},
		"nil token function":       {"https://relayers.example", token, options{client.WithTokenFunc(nil)}, false},
		"nil HTTP client":          {"https://relayers.example", token, options{client.WithHTTPClient(nil)}, false},
		"no attempt":               {"https://relayers.example", token, options{client.WithRetries(0, 0)}, false},
		"negative time":            {"https://relayers.example", token, options{client.WithRetries(1, -1)}, false},
		"no timeout":               {"https://relayers.example", token, options{client.WithTimeout(0)}, false},
		"no response":              {"https://relayers.example", token, options{client.WithMaxResponseBytes(0)}, false},
	}
	for name, test := range tests {
		c, err := client.New(test.url, append(test.options, client.WithToken(test.token))...)
		if (err == nil) != test.isValid || (c == nil) == test.isValid {
			t.Errorf("%s: %v, error %v", name, c, err)
		}
		if err != nil {
			wantNoSecret(t, name, err.Error())
		}
	}
}

// Values are printed and logged; the token must not be.
func TestClient_PrintsNoToken(t *testing.T) {
	c := newClient(t, "https://relayers.example/prefix")
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("client", "c", c, "v", *c)
	}
	wantNoSecret(t, "a log", log.String())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		wantNoSecret(t, verb, fmt.Sprintf(verb+verb+verb, c, *c, struct{ client.Client }{*c}))
	}
}

// A relayer that a newer server has stored does not fail the reads of others.
func TestClient_UnknownNetworkType(t *testing.T) {
	const unknown = `{"id":"btc","name":"n","network":"main","network_type":"fictional","paused":false,"signer_id":"s","policies":{"fee_rate":5},"owner":"x"}`
	c, _ := scripted(t, nil,
		respondJSON(200, `{"success":true,"data":[`+unknown+`,{"id":"a","network_type":"evm"}],"changes":[{"revision":4},{"revision":5}],"pagination":{"current_page":1,"per_page":100,"total_items":2},"trace":{}}`),
		respondJSON(200, `{"success":true,"data":`+unknown+`,"change":{"revision":4}}`),
		respond(200, "text/event-stream", "event: updated\ndata: {\"change\":{\"revision\":6},\"relayer\":"+unknown+"}\n\n"),
	)
	page, err := c.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 100})
	if err != nil || len(page.Relayers) != 2 {
		t.Fatalf("the page is %v, error %v", page, err)
	}
	r := must(c.Get(t.Context(), "btc"))(t)
	for change := range each(t, c.Watch(t.Context(), relayer.WatchQuery{After: "p0"})) {
		for _, r := range []*relayer.Relayer{page.Relayers[0], r, change.Relayer} {
			policy, ok := r.Policy.(*relayer.UnknownPolicy)
			if !ok || r.NetworkType != "fictional" || policy.Type != "fictional" || string(policy.Raw) != `{"fee_rate":5}` {
				t.Errorf("the relayer is %v", r)
			}
		}
		break
	}
}

// A redirect would send the token or the body elsewhere.
func TestClient_RedirectsRefused(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
		c := clientOf(t, http.RedirectHandler(elsewhere.URL, status), client.WithRetries(1, 0))
		_, err := c.Create(t.Context(), evm("a"))
		if response, ok := errors.AsType[*client.ResponseError](err); !ok || response.Status != status {
			t.Errorf("status %d: error %v", status, err)
		}
		if _, err := c.Get(t.Context(), "a"); err == nil {
			t.Errorf("status %d: no error", status)
		}
		elsewhere.Close()
	}
}

// All calls, failed ones too, reuse the connection. A kind of call that did not would open
// 20. The transport itself drops a few on a busy machine: it waits only 50 ms for its own
// report that the request was written.
func TestClient_ReusesConnections(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(handlerOf(t, newManager(t)))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := newClient(t, server.URL)
	for i := range 20 {
		id := fmt.Sprint("r", i)
		must(c.Create(t.Context(), evm(id)))(t)
		_, missing := c.Get(t.Context(), "unknown")
		_, invalid := c.Patch(t.Context(), id, []byte(`{"name":""}`))
		if !errors.Is(missing, relayer.ErrNotFound) || !errors.Is(invalid, relayer.ErrInvalid) {
			t.Fatal(missing, invalid)
		}
		must(c.List(t.Context(), relayer.ListQuery{Page: 1, PerPage: 100}))(t)
	}
	if got := opened.Load(); got >= 20 {
		t.Errorf("%d connections", got)
	}
}

// HTTP/2 reports lost connections in another way than HTTP/1.
func TestClient_HTTP2(t *testing.T) {
	m := newManager(t)
	var versions sync.Map
	api := handlerOf(t, m)
	var creates atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		versions.Store(r.ProtoMajor, true)
		if r.Method == http.MethodPost && creates.Add(1) == 1 {
			api.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, server.URL, client.WithHTTPClient(server.Client()))
	if created, err := c.Create(ctx, evm("a")); err != nil || created.Revision == 0 {
		t.Fatalf("created %v, error %v", created, err)
	}
	changes := c.Watch(ctx, relayer.WatchQuery{})
	must(c.Pause(ctx, "a"))(t)
	for change, err := range changes {
		if err != nil || change.Kind != relayer.ChangeUpdated || !change.Relayer.Paused || change.Relayer.Revision == 0 {
			t.Errorf("%v, error %v", change, err)
		}
		break
	}
	if _, ok := versions.Load(1); ok {
		t.Error("a request was not sent by HTTP/2")
	}
	untrusted := newClient(t, server.URL, client.WithRetries(3, time.Minute))
	_, err := untrusted.Pause(ctx, "a")
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("an unknown certificate: error %v", err)
	}
}
