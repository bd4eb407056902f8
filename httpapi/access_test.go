package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
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
	id                 string
	actions            []relayer.Action
}{
	{"GET", collection, "", "", []relayer.Action{relayer.ActionList}},
	{"HEAD", collection, "", "", []relayer.Action{relayer.ActionList}},
	{"POST", collection, minimal(`,"id":"r-2"`), "", []relayer.Action{relayer.ActionCreate}},
	{"POST", collection + "?dry_run=true", minimal(`,"id":"r-3"`), "", []relayer.Action{relayer.ActionCreate}},
	{"HEAD", changes, "", "", []relayer.Action{relayer.ActionWatch}},
	{"GET", one, "", "r-1", []relayer.Action{relayer.ActionGet}},
	{"HEAD", one, "", "r-1", []relayer.Action{relayer.ActionGet}},
	{"GET", collection + "/a%2Fb", "", "a/b", []relayer.Action{relayer.ActionGet}},
	{"PATCH", one, `{"paused":true}`, "r-1", []relayer.Action{relayer.ActionUpdate}},
	{"HEAD", one + "/history", "", "r-1", []relayer.Action{relayer.ActionGet}},
	{"GET", one + "/history", "", "r-1", []relayer.Action{relayer.ActionGet}},
	{"POST", pause + "?all=true", "", "", []relayer.Action{relayer.ActionPause}},
	{"POST", resume + "?all=true", "", "", []relayer.Action{relayer.ActionResume}},
	{"GET", allHistory, "", "", []relayer.Action{relayer.ActionList}},
	{"HEAD", allHistory, "", "", []relayer.Action{relayer.ActionList}},
	{"GET", one + "?rpc_urls=full", "", "r-1", []relayer.Action{relayer.ActionGet, relayer.ActionReveal}},
	{"HEAD", one + "?a=b&rpc%5Furls=ful%6c", "", "r-1", []relayer.Action{relayer.ActionGet, relayer.ActionReveal}},
	{"GET", collection + "?rpc_urls=full", "", "", []relayer.Action{relayer.ActionList, relayer.ActionReveal}},
	{"HEAD", changes + "?rpc_urls=full", "", "", []relayer.Action{relayer.ActionWatch, relayer.ActionReveal}},
	{"GET", one + "/history?rpc_urls=full", "", "r-1", []relayer.Action{relayer.ActionGet}},
	{"PUT", one + "/disabled_reason", `{"type":"x"}`, "r-1", []relayer.Action{relayer.ActionDisable}},
	{"DELETE", one + "/disabled_reason", "", "r-1", []relayer.Action{relayer.ActionEnable}},
	{"DELETE", one, "", "r-1", []relayer.Action{relayer.ActionDelete}},
}

// withParameter adds a parameter to the query of a path.
func withParameter(path, parameter string) string {
	if strings.Contains(path, "?") {
		return path + "&" + parameter
	}
	return path + "?" + parameter
}

// authorizer is an Authorizer that records its calls and returns what the test sets.
type authorizer struct {
	mu      sync.Mutex
	calls   []httpapi.Access
	outcome func() (httpapi.Decision, error)
}

func (a *authorizer) authorize(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, access)
	return a.outcome()
}

func (a *authorizer) set(outcome func() (httpapi.Decision, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls, a.outcome = nil, outcome
}

func (a *authorizer) recorded() []httpapi.Access {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func allow() (httpapi.Decision, error) { return httpapi.Allow(relayer.Selector{}), nil }

func refuse() (httpapi.Decision, error) { return httpapi.Decision{}, nil }

func failingWith(err error) func() (httpapi.Decision, error) {
	return func() (httpapi.Decision, error) { return httpapi.Allow(relayer.Selector{}), err }
}

// serveAuthorized starts a registry with the relayer r-1 and with engine operations.
func serveAuthorized(t *testing.T, options ...httpapi.Option) (*service, *authorizer) {
	t.Helper()
	a := &authorizer{outcome: allow}
	s := serve(t, append(options, httpapi.WithEngineOperations(), httpapi.WithAuthorizer(a.authorize))...)
	s.create(minimal(`,"id":"r-1"`))
	a.set(allow)
	return s, a
}

func TestAuthorizer_Access(t *testing.T) {
	s, a := serveAuthorized(t)
	for _, r := range authorizedRequests {
		a.set(allow)
		got := s.do(r.method, r.path, r.body, with("X-Request-Id", "req-1"))
		actor := relayer.Actor{ID: "alice", RequestID: "req-1", Address: "127.0.0.1"}
		var want []httpapi.Access
		for _, action := range r.actions {
			want = append(want, httpapi.Access{Actor: actor, Action: action, ID: r.id})
		}
		if calls := a.recorded(); !reflect.DeepEqual(calls, want) {
			t.Errorf("%s %s: calls %+v, want %+v", r.method, r.path, calls, want)
		}
		if got.status >= 400 && got.status != http.StatusNotFound {
			t.Errorf("%s %s returned %d: %s", r.method, r.path, got.status, got.body)
		}
	}
}

// TestAuthorizer_Actor: an authorizer and the hooks of the registry get what the authenticator
// knows of the actor, and its request.
func TestAuthorizer_Actor(t *testing.T) {
	authenticate := func(*http.Request) (relayer.Actor, error) {
		return relayer.Actor{ID: "ann", Attributes: map[string][]string{"tenant": {"payments"}}}, nil
	}
	scope := func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
		return httpapi.Allow(relayer.Selector{}.Where("label.team", access.Actor.Attributes["tenant"]...)), nil
	}
	var seen []string
	observe := func(_ context.Context, o *relayer.Operation) (context.Context, func(error)) {
		return nil, func(error) { seen = append(seen, fmt.Sprintf("%s by %+v", o.Action, o.Actor)) }
	}
	s := serveAs(t, authenticate, []relayer.Option{relayer.WithObserver(observe)},
		httpapi.WithAuthorizer(scope), httpapi.WithClientAddress(func(*http.Request) string { return "192.0.2.1" }))
	for _, c := range []struct {
		method, body, action string
		want                 int
	}{
		{"POST", minimal(`,"labels":{"team":"payments"}`), "create", http.StatusCreated},
		{"POST", minimal(`,"labels":{"team":"risk"}`), "create", http.StatusBadRequest},
		{"GET", "", "list", http.StatusOK},
	} {
		seen = nil
		got := s.do(c.method, collection, c.body, with("X-Request-Id", "req-1"))
		want := c.action + " by {ID:ann RequestID:req-1 Address:192.0.2.1 Attributes:map[tenant:[payments]]}"
		if got.status != c.want || !slices.Equal(seen, []string{want}) {
			t.Errorf("%s %s: %d, observed %q, want %s", c.method, c.body, got.status, seen, want)
		}
	}
}

// TestAuthorizer_NotCalled: nobody is authorized for what is not an operation, or is not
// authenticated.
func TestAuthorizer_NotCalled(t *testing.T) {
	s, a := serveAuthorized(t)
	for _, c := range []struct {
		method, path string
		header       header
		want         int
	}{
		{"GET", collection, with("Authorization"), 401},
		{"GET", collection, with("Authorization", "Bearer wrong"), 401},
		{"PUT", collection, with("X-Ignored"), 405},
		{"GET", "/nowhere", with("X-Ignored"), 404},
		{"GET", openAPI, with("Authorization"), 200},
	} {
		got := s.send(c.method, c.path, "", c.header)
		if calls := a.recorded(); got.status != c.want || len(calls) > 0 {
			t.Errorf("%s %s returned %d, want %d, after the calls %+v", c.method, c.path, got.status, c.want, calls)
		}
	}
}

// TestAuthorizer_Refusal: a refused request is 403 and has no effect, whatever else is
// wrong with it.
func TestAuthorizer_Refusal(t *testing.T) {
	s, a := serveAuthorized(t)
	defer s.unchanged()()
	a.set(refuse)
	for _, r := range authorizedRequests {
		for _, body := range []string{r.body, "{"} {
			for _, contentType := range []string{"application/json", "text/plain"} {
				headers := []header{with("Content-Type", contentType), with("If-Match", `"0"`), with("If-None-Match", "*")}
				got := s.expect(http.StatusForbidden, r.method, withParameter(r.path, "page=x"), body, headers...)
				if r.method != "HEAD" {
					wantFailure(t, got, http.StatusForbidden, "Forbidden")
				}
			}
		}
	}
}

// TestAuthorizer_Fault: an error is a fault of the host and no refusal, even together with
// a decision. So is a selector that no view can have.
func TestAuthorizer_Fault(t *testing.T) {
	s, a := serveAuthorized(t)
	defer s.unchanged()()
	within := func(key, value string) func() (httpapi.Decision, error) {
		return func() (httpapi.Decision, error) { return httpapi.Allow(relayer.Selector{}.Where(key, value)), nil }
	}
	for _, c := range []struct {
		outcome func() (httpapi.Decision, error)
		want    int
	}{
		{failingWith(relayer.ErrUnavailable), http.StatusServiceUnavailable},
		{failingWith(errors.New(`Post "https://rpc.example/v2/key?a=b": connection refused`)), http.StatusServiceUnavailable},
		{failingWith(&relayer.ValidationError{Fields: []relayer.FieldError{{Field: "id", Message: "bad"}}}), http.StatusServiceUnavailable},
		{failingWith(relayer.ErrNotFound), http.StatusServiceUnavailable},
		{failingWith(relayer.ErrOutcomeUnknown), http.StatusServiceUnavailable},
		{failingWith(httpapi.ErrUnauthorized), http.StatusServiceUnavailable},
		{failingWith((*relayer.ValidationError)(nil)), http.StatusServiceUnavailable},
		{within("unknown", "x"), http.StatusServiceUnavailable},
		{within("search", "x"), http.StatusServiceUnavailable},
		{func() (httpapi.Decision, error) { panic("the directory at https://user:p@rpc.example/v2/key failed") }, http.StatusInternalServerError},
	} {
		a.set(c.outcome)
		for _, r := range authorizedRequests {
			got := s.do(r.method, r.path, r.body)
			if got.status != c.want || (got.header.Get("Retry-After") != "") != (c.want == http.StatusServiceUnavailable) {
				t.Errorf("%s %s returned %d %v, want %d", r.method, r.path, got.status, got.header, c.want)
			}
		}
	}
	if log := s.log.String(); !strings.Contains(log, "connection refused") {
		t.Errorf("the cause is not in the log: %s", log)
	}
}

func TestAccess(t *testing.T) {
	team := relayer.Selector{}.Where("label.team", "payments")
	engine := httpapi.WithEngineOperations()
	read := []relayer.Action{relayer.ActionGet, relayer.ActionList, relayer.ActionWatch}
	for name, c := range map[string]struct {
		options   []httpapi.Option
		authorize httpapi.Authorizer
		want      string
	}{
		"no authorizer, engine": {
			options: []httpapi.Option{engine},
			want:    `{"principal":"alice","actions":["list","create","watch","pause","resume","get","update","delete","disable","enable","reveal"],"selector":""}`,
		},
		"writes within a team": {
			authorize: func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
				if slices.Contains(read, access.Action) {
					return httpapi.Allow(relayer.Selector{}), nil
				}
				return httpapi.Allow(team), nil
			},
			want: `{"principal":"alice","actions":["list","create","watch","pause","resume","get","update","delete"],"selector":"",` +
				`"selectors":{"create":"label.team=payments","delete":"label.team=payments","pause":"label.team=payments","resume":"label.team=payments","update":"label.team=payments"}}`,
		},
		"nothing": {
			authorize: func(context.Context, httpapi.Access) (httpapi.Decision, error) { return refuse() },
			want:      `{"principal":"alice","actions":[],"selector":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.authorize != nil {
				c.options = append(c.options, httpapi.WithAuthorizer(c.authorize))
			}
			got := serve(t, c.options...).do("GET", access, "")
			if want := fmt.Sprintf(`{"success":true,"data":%s}`, c.want); got.status != http.StatusOK || got.body != want {
				t.Errorf("got %d %s\nwant %s", got.status, got.body, want)
			}
		})
	}
	s, a := serveAuthorized(t)
	s.expect(http.StatusOK, "HEAD", access, "")
	a.set(failingWith(errors.New("directory broke")))
	s.expect(http.StatusServiceUnavailable, "GET", access, "")
}
