package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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

// TestClient_SameAsManager runs the same operations on a Manager and on a client, and
// compares the results and errors.
func TestClient_SameAsManager(t *testing.T) {
	guard := relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete && old.ID == "protected" {
			return relayer.Refuse("transactions are pending")
		}
		return nil
	})
	manager := newManager(t, guard)
	c := serveEngine(t, newManager(t, guard))
	// The operations of each group need the relayers that the groups before it have left.
	for _, operation := range slices.Concat(creates(), reads(), patches(), switches(), deletes()) {
		want, wantErr := operation.run(call{Registry: manager, ctx: t.Context()})
		if page, ok := want.(*relayer.Page); ok && page != nil {
			page.Position = "" // over HTTP, only a page by a cursor has one
		}
		got, err := operation.run(call{Registry: c, ctx: t.Context()})
		if printed(got) != printed(want) {
			t.Errorf("%s: %v, want %v", operation.name, got, want)
		}
		if errorKind(err) != errorKind(wantErr) {
			t.Errorf("%s: error %v, want %v", operation.name, err, wantErr)
		}
		if gotRevisions, wantRevisions := revisionsOf(got), revisionsOf(want); !slices.Equal(gotRevisions, wantRevisions) {
			t.Errorf("%s: revisions %d, want %d", operation.name, gotRevisions, wantRevisions)
		}
	}
}

type operation struct {
	name string
	run  func(call) (any, error)
}

func creates() []operation {
	create := func(name string, change func(*relayer.CreateRequest)) operation {
		return operation{name, func(c call) (any, error) { return c.Create(c.ctx, changed(change)) }}
	}
	token := relayer.StellarAllowedToken{Asset: "native", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{}}}
	return []operation{
		create("create", func(*relayer.CreateRequest) {}),
		create("create again", func(*relayer.CreateRequest) {}),
		create("create solana", func(r *relayer.CreateRequest) {
			r.ID, r.NetworkType, r.Policy, r.Paused = "sol", relayer.Solana, nil, true
		}),
		create("create stellar", func(r *relayer.CreateRequest) {
			r.ID, r.NetworkType, r.CustomRPCURLs = "xlm", relayer.Stellar, []relayer.RPCConfig{}
			r.Policy = &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{token}}
		}),
		create("create invalid", func(r *relayer.CreateRequest) {
			*r = relayer.CreateRequest{ID: "a b", NetworkType: "tron", CustomRPCURLs: []relayer.RPCConfig{{URL: "x"}}}
		}),
		create("create with another policy", func(r *relayer.CreateRequest) { r.ID, r.NetworkType = "b", relayer.Solana }),
		create("create not UTF-8", func(r *relayer.CreateRequest) { r.ID, r.Name = "b", "a\xff" }),
		create("create protected", func(r *relayer.CreateRequest) { r.ID = "protected" }),
	}
}

func reads() []operation {
	get := func(name, id string) operation {
		return operation{name, func(c call) (any, error) { return c.Get(c.ctx, id) }}
	}
	list := func(name string, page int) operation {
		return operation{name, func(c call) (any, error) { return c.List(c.ctx, relayer.ListQuery{Page: page, PerPage: 2}) }}
	}
	return []operation{
		get("get", "a"),
		get("get unknown", "unknown"),
		get("get empty", ""),
		get("get impossible", "../a?b"),
		list("list", 1),
		list("list past the end", 9),
		{"all", allOf},
	}
}

func allOf(c call) (any, error) {
	var all []*relayer.Relayer
	for r, err := range c.All(c.ctx, relayer.Selector{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func patches() []operation {
	patch := func(name, id, patch string) operation {
		return operation{name, func(c call) (any, error) { return c.Patch(c.ctx, id, []byte(patch)) }}
	}
	return []operation{
		patch("patch", "a", `{"name":"new","notification_id":null,"policies":{"min_balance":5,"gas_price_cap":null}}`),
		patch("patch nothing", "a", `{}`),
		patch("patch nothing at all", "a", ``),
		patch("patch URLs", "a", `{"custom_rpc_urls":[{"url":"https://other.example/key","weight":5}]}`),
		patch("patch policy", "sol", `{"policies":{"max_signatures":3}}`),
		patch("patch policies away", "sol", `{"policies":null}`),
		patch("patch not UTF-8", "a", "{\"name\":\"a\xff\"}"),
		patch("patch invalid", "a", `{"name":null,"id":"b","policies":{"min_balance":-1}}`),
		patch("patch a masked URL", "a", `{"custom_rpc_urls":[{"url":"https://other.example/***"}]}`),
		patch("patch not JSON", "a", `{"name":`),
		patch("patch unknown", "unknown", `{"paused":true}`),
		patch("patch impossible", "a/b", `{"paused":true}`),
	}
}

func switches() []operation {
	return []operation{
		{"pause", func(c call) (any, error) { return c.Pause(c.ctx, "a") }},
		{"pause again", func(c call) (any, error) { return c.Pause(c.ctx, "a") }},
		{"resume at the revision", func(c call) (any, error) {
			return c.Resume(c.ctx, "a", relayer.IfRevision(currentRevision(c, "a"), 1), relayer.IfRevision(currentRevision(c, "a")))
		}},
		{"resume at another revision", func(c call) (any, error) {
			return c.Resume(c.ctx, "a", relayer.IfRevision(currentRevision(c, "a")+1))
		}},
		{"resume at no revision", func(c call) (any, error) { return c.Resume(c.ctx, "a", relayer.IfRevision()) }},
		{"disable", func(c call) (any, error) {
			reason := relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "dial https://rpc.example/v2/secret-key: refused"}
			return c.Disable(c.ctx, "a", reason, relayer.IfRevision(currentRevision(c, "a")))
		}},
		{"disable unknown", func(c call) (any, error) { return c.Disable(c.ctx, "unknown", relayer.DisabledReason{Type: "x"}) }},
		{"enable at another revision", func(c call) (any, error) {
			return c.Enable(c.ctx, "a", relayer.IfRevision(currentRevision(c, "a")+1))
		}},
		{"enable", func(c call) (any, error) { return c.Enable(c.ctx, "a") }},
		{"enable again", func(c call) (any, error) { return c.Enable(c.ctx, "a") }},
	}
}

func deletes() []operation {
	remove := func(name, id string) operation {
		return operation{name, func(c call) (any, error) { return nil, c.Delete(c.ctx, id) }}
	}
	return []operation{
		{"delete at another revision", func(c call) (any, error) {
			return nil, c.Delete(c.ctx, "a", relayer.IfRevision(currentRevision(c, "a")+1))
		}},
		remove("delete refused", "protected"),
		remove("delete", "a"),
		remove("delete again", "a"),
		remove("delete impossible", ".."),
		{"all after the deletes", allOf},
	}
}

// currentRevision returns 0 if the relayer cannot be read.
func currentRevision(c call, id string) uint64 {
	r, err := c.Get(c.ctx, id)
	if err != nil {
		return 0
	}
	return r.Revision
}

// revisionsOf returns the revisions of the relayers of a result.
func revisionsOf(result any) (revisions []uint64) {
	var relayers []*relayer.Relayer
	switch result := result.(type) {
	case *relayer.Page:
		if result != nil {
			relayers = result.Relayers
		}
	case []*relayer.Relayer:
		relayers = result
	case *relayer.Relayer:
		if result != nil {
			relayers = []*relayer.Relayer{result}
		}
	}
	for _, r := range relayers {
		revisions = append(revisions, r.Revision)
	}
	return revisions
}

// printed returns the JSON of a result, in which URLs are masked and revisions absent.
func printed(result any) string {
	encoded, err := json.Marshal(result)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// errorKind returns the properties of an error that a program can match.
func errorKind(err error) string {
	var kind []any
	for _, sentinel := range []error{relayer.ErrNotFound, relayer.ErrExists, relayer.ErrConflict, relayer.ErrInvalid, relayer.ErrUnavailable, relayer.ErrOutcomeUnknown} {
		kind = append(kind, errors.Is(err, sentinel))
	}
	if problem, ok := errors.AsType[*relayer.ValidationError](err); ok {
		fields := slices.Clone(problem.Fields)
		for i := range fields {
			fields[i].Code = "" // the HTTP API has none
		}
		kind = append(kind, fields)
	}
	return fmt.Sprint(append(kind, err == nil)...)
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
	for change, err := range c.Watch(t.Context(), relayer.WatchQuery{After: "p0"}) {
		if err != nil {
			t.Fatal(err)
		}
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
