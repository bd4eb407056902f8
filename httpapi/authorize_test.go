package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// authorizedRequests has a request for each action.
var authorizedRequests = []struct {
	method, path, body string
	want               httpapi.Access
}{
	{"GET", collection, "", httpapi.Access{Action: httpapi.ActionList}},
	{"HEAD", collection, "", httpapi.Access{Action: httpapi.ActionList}},
	{"POST", collection, minimal(`,"id":"r-2"`), httpapi.Access{Action: httpapi.ActionCreate}},
	{"HEAD", changes, "", httpapi.Access{Action: httpapi.ActionWatch}},
	{"GET", collection + "/r-1", "", httpapi.Access{Action: httpapi.ActionGet, ID: "r-1"}},
	{"HEAD", collection + "/r-1", "", httpapi.Access{Action: httpapi.ActionGet, ID: "r-1"}},
	{"GET", collection + "/a%2Fb", "", httpapi.Access{Action: httpapi.ActionGet, ID: "a/b"}},
	{"PATCH", collection + "/r-1", `{"paused":true}`, httpapi.Access{Action: httpapi.ActionUpdate, ID: "r-1"}},
	{"DELETE", collection + "/r-1", "", httpapi.Access{Action: httpapi.ActionDelete, ID: "r-1"}},
}

// authorizer is a function for WithAuthorizer that records its calls and returns
// what the test sets.
type authorizer struct {
	mu      sync.Mutex
	calls   []httpapi.Access
	outcome func() error
}

func (a *authorizer) authorize(_ context.Context, access httpapi.Access) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, access)
	return a.outcome()
}

func (a *authorizer) set(outcome func() error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls, a.outcome = nil, outcome
}

func (a *authorizer) recorded() []httpapi.Access {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func allow() error { return nil }

func returning(err error) func() error { return func() error { return err } }

// serveAuthorized starts a registry with the relayer r-1.
func serveAuthorized(t *testing.T, options ...httpapi.Option) (*service, *authorizer) {
	t.Helper()
	a := &authorizer{outcome: allow}
	s := serve(t, append(options, httpapi.WithAuthorizer(a.authorize))...)
	s.create(minimal(`,"id":"r-1"`))
	a.set(allow)
	return s, a
}

func TestAuthorizer_Access(t *testing.T) {
	s, a := serveAuthorized(t)
	for _, r := range authorizedRequests {
		a.set(allow)
		got := s.do(r.method, r.path, r.body, with("Content-Type", "application/json"))
		want := r.want
		want.Principal = "token-1"
		if calls := a.recorded(); !slices.Equal(calls, []httpapi.Access{want}) {
			t.Errorf("%s %s: calls %+v, want one with %+v", r.method, r.path, calls, want)
		}
		if got.status >= 400 && r.want.ID != "a/b" {
			t.Errorf("%s %s returned %d: %s", r.method, r.path, got.status, got.body)
		}
	}
}

func TestAuthorizer_NotCalled(t *testing.T) {
	s, a := serveAuthorized(t)
	for _, c := range []struct {
		method, path, authorization string
		want                        int
	}{
		{"GET", collection, "Bearer wrong", http.StatusUnauthorized},
		{"DELETE", collection + "/r-1", "", http.StatusUnauthorized},
		{"GET", "/nowhere", "Bearer " + validToken, http.StatusNotFound},
		{"PUT", collection + "/r-1", "Bearer " + validToken, http.StatusMethodNotAllowed},
	} {
		if got := s.do(c.method, c.path, "", with("Authorization", c.authorization)); got.status != c.want {
			t.Errorf("%s %s returned %d, want %d", c.method, c.path, got.status, c.want)
		}
	}
	if got := s.send("GET", openAPI, "", with("Authorization")); got.status != http.StatusOK {
		t.Errorf("the OpenAPI document returned %d", got.status)
	}
	if calls := a.recorded(); len(calls) > 0 {
		t.Errorf("calls %+v", calls)
	}
}

// A refusal precedes every other check of the request, and changes nothing.
func TestAuthorizer_Refusal(t *testing.T) {
	s, a := serveAuthorized(t, httpapi.WithMaxBodyBytes(200))
	before := s.contents()
	a.set(returning(fmt.Errorf("read only, -secret: %w", httpapi.ErrForbidden)))
	for _, r := range authorizedRequests {
		for _, body := range []string{r.body, "{", strings.Repeat(" ", 300)} {
			for _, contentType := range []string{"application/json", "text/plain"} {
				got := s.do(r.method, r.path, body, with("Content-Type", contentType), with("If-Match", `"0"`), with("If-None-Match", "*"))
				if got.status != http.StatusForbidden {
					t.Errorf("%s %s returned %d", r.method, r.path, got.status)
				}
				if r.method != "HEAD" {
					wantFailure(t, got, http.StatusForbidden, "Forbidden")
				}
			}
		}
	}
	if got := s.do("GET", collection+"?page=x", ""); got.status != http.StatusForbidden {
		t.Errorf("an invalid query returned %d", got.status)
	}
	if after := s.contents(); after != before {
		t.Errorf("contents\n%s\nwant\n%s", after, before)
	}
}

// ErrNotFound hides a relayer: the response is the one to an unknown ID.
func TestAuthorizer_HiddenRelayer(t *testing.T) {
	s, a := serveAuthorized(t)
	s.create(minimal(`,"id":"r-2"`))
	for _, method := range []string{"GET", "HEAD", "PATCH", "DELETE"} {
		request := func(id string) reply {
			got := s.do(method, collection+"/"+id, "{}", with("Content-Type", "application/json"))
			got.header.Del("X-Request-Id")
			got.header.Del("Date")
			got.body = strings.ReplaceAll(got.body, id, "<id>")
			return got
		}
		a.set(allow)
		unknown := request("r-9")
		a.set(returning(relayer.ErrNotFound))
		hidden := request("r-2")
		if hidden.status != http.StatusNotFound || hidden.body != unknown.body || encode(t, hidden.header) != encode(t, unknown.header) {
			t.Errorf("%s: hidden %d %v %s, unknown %d %v %s", method, hidden.status, hidden.header, hidden.body, unknown.status, unknown.header, unknown.body)
		}
	}
	for _, r := range authorizedRequests[:3] {
		if got := s.do(r.method, r.path, r.body); got.status != http.StatusForbidden {
			t.Errorf("%s %s returned %d, want 403", r.method, r.path, got.status)
		}
	}
}

func TestAuthorizer_BeforeRateLimit(t *testing.T) {
	s, a := serveAuthorized(t, httpapi.WithRateLimit(0.01, 1))
	a.set(returning(httpapi.ErrForbidden))
	for range 3 {
		if got := s.do("GET", collection, ""); got.status != http.StatusForbidden {
			t.Fatalf("returned %d, want 403", got.status)
		}
	}
	a.set(allow)
	if got := s.do("GET", collection, ""); got.status != http.StatusOK {
		t.Errorf("refused requests count against the rate: status %d", got.status)
	}
	if got := s.do("GET", collection, ""); got.status != http.StatusTooManyRequests {
		t.Errorf("returned %d, want 429", got.status)
	}
	a.set(returning(httpapi.ErrForbidden))
	if got := s.do("GET", collection, ""); got.status != http.StatusForbidden {
		t.Errorf("above the rate, status %d, want 403", got.status)
	}
}

// TestAuthorizer_Fault: an error that is not a refusal is a fault of the host, whatever it
// means elsewhere.
func TestAuthorizer_Fault(t *testing.T) {
	s, a := serveAuthorized(t)
	before := s.contents()
	for _, c := range []struct {
		outcome func() error
		want    int
	}{
		{returning(relayer.ErrUnavailable), http.StatusServiceUnavailable},
		{returning(errors.New(`Post "https://rpc.example/v2/key?a=b": connection refused`)), http.StatusServiceUnavailable},
		{returning(&relayer.ValidationError{Fields: []relayer.FieldError{{Field: "id", Message: "bad"}}}), http.StatusServiceUnavailable},
		{returning(relayer.ErrExists), http.StatusServiceUnavailable},
		{returning(relayer.ErrOutcomeUnknown), http.StatusServiceUnavailable},
		{returning((*relayer.ValidationError)(nil)), http.StatusServiceUnavailable},
		{func() error { panic("the directory at https://user:p@rpc.example/v2/key failed") }, http.StatusInternalServerError},
	} {
		a.set(c.outcome)
		for _, r := range authorizedRequests {
			got := s.do(r.method, r.path, r.body, with("Content-Type", "application/json"))
			if got.status != c.want || (got.header.Get("Retry-After") != "") != (c.want == http.StatusServiceUnavailable) {
				t.Errorf("%s %s returned %d %v, want %d", r.method, r.path, got.status, got.header, c.want)
			}
		}
	}
	if after := s.contents(); after != before {
		t.Errorf("contents\n%s\nwant\n%s", after, before)
	}
	if log := s.log.String(); !strings.Contains(log, "connection refused") {
		t.Errorf("the cause is not in the log: %s", log)
	}
}

func TestAuthorizer_Principal(t *testing.T) {
	a := &authorizer{outcome: allow}
	auth := httpapi.AuthFunc(func(context.Context, string) (string, error) { return "alice", nil })
	s := serveAs(t, auth, nil, httpapi.WithAuthorizer(a.authorize))
	s.do("GET", collection, "")
	if want := []httpapi.Access{{Principal: "alice", Action: httpapi.ActionList}}; !slices.Equal(a.recorded(), want) {
		t.Errorf("calls %+v, want %+v", a.recorded(), want)
	}
}
