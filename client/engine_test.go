package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

// serveEngine returns a client of a server that permits the operations of an engine.
func serveEngine(t *testing.T, m *relayer.Manager, options ...client.Option) *client.Client {
	t.Helper()
	return clientOf(t, handlerOf(t, m, httpapi.WithEngineOperations()), options...)
}

// A host need not offer these operations.
func TestEngine_Errors(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	readOnly := httpapi.WithAuthorizer(func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
		if access.Action == relayer.ActionGet {
			return httpapi.Allow(relayer.Selector{}), nil
		}
		return httpapi.Decision{}, nil
	})
	tests := map[string]struct {
		client *client.Client
		id     string
		want   error
	}{
		"not enabled": {serve(t, m), "a", errors.ErrUnsupported},
		"public":      {clientOf(t, newPublicServer(1)), "r0", errors.ErrUnsupported},
		"forbidden":   {clientOf(t, handlerOf(t, m, httpapi.WithEngineOperations(), readOnly)), "a", client.ErrForbidden},
		"unknown":     {serveEngine(t, m), "unknown", relayer.ErrNotFound},
		"impossible":  {serveEngine(t, m), "a/b", relayer.ErrNotFound},
	}
	for _, reasonType := range []relayer.DisabledReasonType{"", "a\x00", "a\xff"} {
		_, err := serveEngine(t, m).Disable(t.Context(), "a", relayer.DisabledReason{Type: reasonType})
		if invalid, ok := errors.AsType[*relayer.ValidationError](err); !ok || invalid.Fields[0].Field != "type" {
			t.Errorf("type %q: error %v", reasonType, err)
		}
	}
	for name, test := range tests {
		for operation, err := range map[string]error{
			"disable": second(test.client.Disable(t.Context(), test.id, relayer.DisabledReason{Type: "x"})),
			"enable":  second(test.client.Enable(t.Context(), test.id)),
			"reveal":  second(test.client.RPCURLs(t.Context(), test.id)),
		} {
			if !errors.Is(err, test.want) || errors.Is(err, relayer.ErrOutcomeUnknown) || !strings.Contains(fmt.Sprint(err), operation) {
				t.Errorf("%s, %s: error %v, want %v", name, operation, err, test.want)
			}
		}
	}
}

const fullURL = "https://rpc.example/v2/secret-key"

func urlOf(r *relayer.Relayer) string {
	if len(r.CustomRPCURLs) != 1 {
		return "none"
	}
	return r.CustomRPCURLs[0].URL.Unmasked()
}

func TestWithFullRPCURLs(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 30)
	var requests, full atomic.Int32
	api := handlerOf(t, m, httpapi.WithEngineOperations())
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.FormValue("rpc_urls") == "full" {
			full.Add(1)
		}
		api.ServeHTTP(w, r)
	}), client.WithFullRPCURLs())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := c.Watch(ctx, relayer.WatchQuery{})
	for r, err := range c.All(ctx, relayer.Selector{}) {
		if err != nil || urlOf(r) != fullURL {
			t.Fatalf("%v has %s, error %v", r, urlOf(r), err)
		}
	}
	page, err := c.List(ctx, relayer.ListQuery{PerPage: 3})
	if err != nil || urlOf(page.Relayers[2]) != fullURL || *page.Relayers[2].CustomRPCURLs[0].Weight != 100 {
		t.Errorf("page %v, error %v", page, err)
	}
	must(m.Patch(ctx, "r7", []byte(`{"custom_rpc_urls":[{"url":"`+fullURL+`2"}]}`)))(t)
	if r, err := c.Get(ctx, "r7"); err != nil || urlOf(r) != fullURL+"2" {
		t.Errorf("%v has %s, error %v", r, urlOf(r), err)
	}
	if urls, err := c.RPCURLs(ctx, "r8"); err != nil || len(urls) != 1 || urls[0].URL.Unmasked() != fullURL || *urls[0].Weight != 100 {
		t.Errorf("the URLs are %v, error %v", urls, err)
	}
	must(m.Pause(ctx, "r8"))(t)
	var got []string
	for change := range each(t, changes) {
		if got = append(got, fmt.Sprint(change.Kind, " ", change.Relayer.ID, " ", urlOf(change.Relayer))); len(got) == 2 {
			break
		}
	}
	if want := []string{"updated r7 " + fullURL + "2", "updated r8 " + fullURL}; !slices.Equal(got, want) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
	if n := requests.Load(); n != 6 || full.Load() != 6 {
		t.Errorf("%d requests, %d with full URLs, want two for the watch, and one for all, the page, the relayer and the URLs", n, full.Load())
	}
}

// The watch begins at a position of the relayers whose URLs the client may read.
func TestWithFullRPCURLs_NarrowReveal(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 1)
	narrow := httpapi.WithAuthorizer(func(_ context.Context, a httpapi.Access) (httpapi.Decision, error) {
		if a.Action == relayer.ActionReveal {
			return httpapi.Allow(relayer.Selector{}.Where("network", "sepolia")), nil
		}
		return httpapi.Allow(relayer.Selector{}), nil
	})
	c := clientOf(t, handlerOf(t, m, httpapi.WithEngineOperations(), narrow), client.WithFullRPCURLs())
	changes := c.Watch(t.Context(), relayer.WatchQuery{})
	must(m.Pause(t.Context(), "r0"))(t)
	for change, err := range changes {
		if err != nil || change.ID != "r0" {
			t.Errorf("%+v, error %v", change, err)
		}
		break
	}
}

// brokenKeys seal, and open nothing.
type brokenKeys struct{ keyring.Keyring }

func (brokenKeys) Seal(_ context.Context, plaintext, _ []byte) ([]byte, error) {
	return plaintext, nil
}

func (brokenKeys) Open(context.Context, []byte, []byte) ([]byte, error) {
	return nil, errors.New("the key is missing")
}

// The URLs of a relayer that the server cannot open are masked and marked, and the error is
// that of RPCURLs.
func TestWithFullRPCURLs_Sealed(t *testing.T) {
	m := must(relayer.New(must(sealed.New(memory.New(), brokenKeys{}))(t)))(t)
	c := serveEngine(t, m, client.WithFullRPCURLs())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := c.Watch(ctx, relayer.WatchQuery{})
	req := evm("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://user:hunter2@rpc.example/"}, {URL: fullURL}}
	must(m.Create(ctx, req))(t)
	wantMasked := func(what string, r *relayer.Relayer, err error) {
		t.Helper()
		if err != nil || len(r.CustomRPCURLs) != 2 || !r.CustomRPCURLs[0].URL.IsMasked() || !r.CustomRPCURLs[1].URL.IsMasked() {
			t.Errorf("%s: %v, error %v", what, r, err)
		}
	}
	r, err := c.Get(ctx, "a")
	wantMasked("get", r, err)
	for r, err := range c.All(ctx, relayer.Selector{}) {
		wantMasked("all", r, err)
	}
	for change, err := range changes {
		wantMasked("watch", change.Relayer, err)
		break
	}
	if urls, err := c.RPCURLs(ctx, "a"); !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("URLs %v, error %v", urls, err)
	}
	_, err = c.Update(ctx, "a", func(r *relayer.Relayer) error {
		r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: fullURL})
		return nil
	})
	if !errors.Is(err, relayer.ErrSealed) || !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("update with another URL: error %v", err)
	}
}

// An error of one relayer ends the read.
func TestWithFullRPCURLs_Errors(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	c := serve(t, m, client.WithFullRPCURLs()) // engine operations are not enabled
	_, getErr := c.Get(t.Context(), "a")
	_, listErr := c.List(t.Context(), relayer.ListQuery{})
	for _, err := range []error{getErr, listErr, firstError(c.All(t.Context(), relayer.Selector{}))} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := c.Pause(t.Context(), "a"); err != nil {
		t.Errorf("a write needs no full URLs: error %v", err)
	}
}

// Nothing of a response with full URLs gets into an error.
func TestRPCURLs_InvalidResponse(t *testing.T) {
	for _, data := range []string{`[{"url":"https://rpc.example/v2/secret-key","weight":"secret-key"}]`, `"secret-key"`} {
		body := `{"success":true,"data":{"id":"a","network_type":"evm","custom_rpc_urls":` + data + `},"change":{"revision":1}}`
		c, _ := scripted(t, nil, respondJSON(200, body))
		_, err := c.RPCURLs(t.Context(), "a")
		if err == nil {
			t.Error("no error")
		}
		wantNoSecret(t, "the error", fmt.Sprint(err))
	}
}

// A token may change at any time, for example because it expires.
func TestWithTokenFunc(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	tokens := client.WithTokenFunc(func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		return fmt.Sprintf("token-%d-hunter2", calls), nil
	})
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, []client.Option{tokens}, fail(503, "Service Unavailable"), fail(400, "not token-2-hunter2"))
		_, err := c.Get(t.Context(), "a")
		for i, want := range []string{"Bearer token-1-hunter2", "Bearer token-2-hunter2"} {
			if got := s.seen[i].header.Get("Authorization"); got != want {
				t.Errorf("request %d has %s, want %s", i, got, want)
			}
		}
		if err == nil || !strings.Contains(err.Error(), "not ***") {
			t.Errorf("error %v", err)
		}
		wantNoSecret(t, "the client", fmt.Sprintf("%v %+v %#v", c, *c, err))
	})
	synctest.Test(t, func(t *testing.T) { // each connection of a long watch
		calls = 0
		f := &feed{scripts: scripts(ends(changeEvent(1)), sends(changeEvent(2)))}
		wantItems(t, watchOver(t, f, relayer.WatchQuery{After: "p0"}, tokens), "updated a 1", "updated a 2")
		for i, header := range f.opened {
			if got, want := header.Get("Authorization"), fmt.Sprintf("Bearer token-%d-hunter2", i+1); got != want {
				t.Errorf("connection %d has %s, want %s", i, got, want)
			}
		}
	})
}

func TestWithTokenFunc_Errors(t *testing.T) {
	cause := errors.New("reading https://vault.example/hunter2: refused")
	for name, test := range map[string]struct {
		token string
		err   error
	}{"failure": {"", cause}, "empty": {"", nil}, "two lines": {"hunter2\n", nil}} {
		c, s := scripted(t, []client.Option{client.WithTokenFunc(func(context.Context) (string, error) { return test.token, test.err })}, fail(500, ""))
		_, getErr := c.Get(t.Context(), "a")
		_, pauseErr := c.Pause(t.Context(), "a")
		for _, err := range []error{getErr, pauseErr, firstError(c.Watch(t.Context(), relayer.WatchQuery{}))} {
			if err == nil || test.err != nil && !errors.Is(err, test.err) || errors.Is(err, relayer.ErrOutcomeUnknown) || len(s.seen) > 0 {
				t.Errorf("%s: error %v after %d requests", name, err, len(s.seen))
			}
			wantNoSecret(t, name, fmt.Sprint(err))
		}
	}
}

// A watch that has had a connection does not wait for a token either.
func TestWithTokenFunc_ErrorEndsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause, calls := errors.New("revoked"), 0
		source := client.WithTokenFunc(func(context.Context) (string, error) {
			if calls++; calls > 1 {
				return "", cause
			}
			return token, nil
		})
		changes := watchOver(t, &feed{scripts: scripts(ends(changeEvent(1)))}, relayer.WatchQuery{After: "p0"}, source)
		if got := take(3, changes); len(got) != 2 || got[0] != "updated a 1" || !strings.Contains(got[1], "revoked") {
			t.Errorf("the changes are %q", got)
		}
	})
}

// A server may authenticate its clients without a token.
func TestNew_NoToken(t *testing.T) {
	s := &script{steps: []step{stored(t, evm("a"), 200, 1)}}
	c := must(client.New("https://relayers.example", client.WithHTTPClient(&http.Client{Transport: s})))(t)
	if _, err := c.Get(t.Context(), "a"); err != nil || len(s.seen[0].header.Values("Authorization")) > 0 {
		t.Errorf("sent %v, error %v", s.seen[0].header, err)
	}
}
