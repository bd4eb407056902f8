package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// script is a transport that responds from a list of steps, one for each request.
type script struct {
	mu    sync.Mutex
	steps []step
	seen  []sent
}

// step responds to a request, or fails.
type step func(*http.Request) (*http.Response, error)

// sent is a request that a script has received.
type sent struct {
	method, path, body string
	header             http.Header
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	seen := sent{method: r.Method, path: r.URL.RequestURI(), header: r.Header}
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		seen.body = string(body)
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen)
	if len(s.steps) == 0 {
		s.mu.Unlock()
		return nil, errors.New("the script has ended")
	}
	next := s.steps[0]
	if len(s.steps) > 1 { // the last step is repeated
		s.steps = s.steps[1:]
	}
	s.mu.Unlock()
	return next(r)
}

// methods returns the methods of the requests, such as "POST GET".
func (s *script) methods() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var methods []string
	for _, request := range s.seen {
		methods = append(methods, request.method)
	}
	return strings.Join(methods, " ")
}

// scripted returns a client whose requests get the responses of the steps.
func scripted(t *testing.T, options []client.Option, steps ...step) (*client.Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	options = append([]client.Option{client.WithHTTPClient(&http.Client{Transport: s, Timeout: time.Hour})}, options...)
	return newClient(t, "https://relayers.example/pre%20fix/", options...), s
}

// respond is a step that sends a response. The pairs are names and values of headers.
func respond(status int, contentType, body string, pairs ...string) step {
	return func(r *http.Request) (*http.Response, error) {
		header := http.Header{}
		if contentType != "" {
			header.Set("Content-Type", contentType)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			header.Set(pairs[i], pairs[i+1])
		}
		return &http.Response{
			StatusCode: status, Status: strconv.Itoa(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header, Request: r, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

func respondJSON(status int, body string, pairs ...string) step {
	return respond(status, "application/json", body, pairs...)
}

// fail responds with a failure of package httpapi.
func fail(status int, message string, pairs ...string) step {
	encoded, _ := json.Marshal(message)
	return respondJSON(status, `{"success":false,"data":null,"message":`+string(encoded)+`}`, pairs...)
}

// html responds like a proxy.
func html(status int) step {
	return respond(status, "text/html", "<html><body>a page that mentions https://rpc.example/v2/secret-key</body></html>")
}

// reset loses the connection after the request was sent.
func reset(*http.Request) (*http.Response, error) {
	return nil, errors.New("read tcp 127.0.0.1:1->127.0.0.1:2: connection reset by peer")
}

// truncated loses the connection in the middle of a response.
func truncated(status int) step {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := respondJSON(status, "")(r)
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"success":true,"da`), failingReader{}))
		return resp, err
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// stored responds with a relayer as the server stores the request, at a revision.
func stored(t *testing.T, req relayer.CreateRequest, status int, revision uint64) step {
	t.Helper()
	m := newManager(t)
	created := must(m.Create(context.Background(), req))(t)
	document := must(m.Documents().Get(context.Background(), created.ID))(t)
	return respondJSON(status, fmt.Sprintf(`{"success":true,"data":%s,"change":{"revision":%d}}`, document.JSON, revision))
}

// currentPosition responds to the read of a position with p0.
var currentPosition = respondJSON(200, `{"success":true,"data":[],"changes":[],"pagination":{"per_page":1,"total_items":0},"position":"p0"}`)

func notFound(id string) step { return fail(404, "Relayer with ID "+id+" not found") }

// wantNoSecret fails the test if the text has a secret of the tests.
func wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{token, "secret-key", "hunter2"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s has the secret %s: %s", what, secret, text)
		}
	}
}

// call is what a function calls a registry with.
type call struct {
	relayer.Registry
	ctx      context.Context
	revision uint64 // of the stored relayer a
	options  []relayer.WriteOption
}

// write is a write of the stored relayer a, or the create of another.
type write struct {
	run     func(call) (*relayer.Relayer, error)
	isOnce  bool   // it happens at most once if it is sent again
	changed string // the fields
}

const created = "address custom_rpc_urls id name network network_type notification_id paused " +
	"policies.gas_price_cap policies.whitelist_receivers signer_id system_disabled"

var writes = map[string]write{
	"create":                   {func(c call) (*relayer.Relayer, error) { return c.Create(c.ctx, evm("new"), c.options...) }, true, created},
	"create of a generated ID": {func(c call) (*relayer.Relayer, error) { return c.Create(c.ctx, evm(""), c.options...) }, true, created},
	"patch": {func(c call) (*relayer.Relayer, error) {
		return c.Patch(c.ctx, "a", []byte(`{"name":"new"}`), c.options...)
	}, false, "name"},
	"patch of URLs": {func(c call) (*relayer.Relayer, error) {
		return c.Patch(c.ctx, "a", []byte(`{"custom_rpc_urls":[{"url":"https://rpc.example/v2/other"}]}`), c.options...)
	}, false, "custom_rpc_urls"},
	"update": {func(c call) (*relayer.Relayer, error) {
		return c.Update(c.ctx, "a", func(r *relayer.Relayer) error { r.Name += "+"; return nil }, c.options...)
	}, true, "name"},
	"pause": {func(c call) (*relayer.Relayer, error) { return c.Pause(c.ctx, "a", c.options...) }, false, "paused"},
	"disable": {func(c call) (*relayer.Relayer, error) {
		return c.Disable(c.ctx, "a", relayer.DisabledReason{Type: "x", Details: "https://rpc.example/v2/secret-key"}, c.options...)
	}, false, "disabled_reason.details disabled_reason.type system_disabled"},
	"delete": {func(c call) (*relayer.Relayer, error) { return nil, c.Delete(c.ctx, "a", c.options...) }, false, ""},
}

// each yields the items, and fails the test with an error.
func each[T any](t *testing.T, items iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		t.Helper()
		for item, err := range items {
			if !yield(must(item, err)(t)) {
				return
			}
		}
	}
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
