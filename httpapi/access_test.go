package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
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

const (
	challenge        = "Bearer"
	challengeInvalid = `Bearer error="invalid_token"`
)

func TestAuth_Header(t *testing.T) {
	s := serve(t)
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "Bearer   "} {
		s.expect(http.StatusOK, "GET", collection, "", with("Authorization", scheme+validToken))
	}
	for _, c := range []struct {
		values []string
		want   string
	}{
		{nil, challenge},
		{[]string{""}, challenge},
		{[]string{"Bearer"}, challenge},
		{[]string{"Bearer "}, challenge},
		{[]string{validToken}, challenge},
		{[]string{"Basic " + validToken}, challenge},
		{[]string{"Bearer" + validToken}, challenge},
		{[]string{"Bearer\t" + validToken}, challenge},
		{[]string{"Basic x", "Basic y"}, challenge},
		{[]string{"Bearer " + validToken + "x"}, challengeInvalid},
		{[]string{"Bearer " + validToken[1:]}, challengeInvalid},
		{[]string{"Bearer " + strings.ToUpper(validToken)}, challengeInvalid},
		{[]string{"Bearer " + validToken + " " + validToken}, challengeInvalid},
		{[]string{"Bearer é"}, challengeInvalid},
		{[]string{"Bearer " + validToken, "Bearer " + validToken}, challengeInvalid},
		{[]string{"Bearer " + validToken, "Basic x"}, challengeInvalid},
		{[]string{"Basic x", "Bearer " + validToken}, challengeInvalid},
		{[]string{"Bearer " + strings.Repeat("x", 100_000)}, challengeInvalid},
	} {
		got := s.do("GET", collection, "", with("Authorization", c.values...))
		wantFailure(t, got, http.StatusUnauthorized, "Unauthorized")
		if got.header.Get("WWW-Authenticate") != c.want {
			t.Errorf("%.60q: WWW-Authenticate is %q, want %q", c.values, got.header.Get("WWW-Authenticate"), c.want)
		}
	}
	s.expect(http.StatusUnauthorized, "GET", collection+"?access_token="+validToken, "", with("Authorization"))
}

// TestTokens_Rotation replaces tokens: those that are removed move no name to another token.
func TestTokens_Rotation(t *testing.T) {
	const first, second, third = "first-0123456789", "second-0123456789", "third-0123456789"
	for name, c := range map[string]struct {
		tokens map[string][]string
		want   map[string]string // the names by token
	}{
		"both":     {map[string][]string{"alice": {first, second}, "bob": {third}}, map[string]string{first: "alice", second: "alice", third: "bob"}},
		"without":  {map[string][]string{"alice": {second}, "bob": {third}}, map[string]string{first: "", second: "alice", third: "bob"}},
		"last one": {map[string][]string{"bob": {third}}, map[string]string{first: "", second: "", third: "bob", first + second: ""}},
	} {
		authenticate := must(httpapi.Tokens(c.tokens))(t)
		clear(c.tokens) // a copy is in use
		for token, want := range c.want {
			r := httptest.NewRequest("GET", collection, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			actor, err := authenticate(r)
			if actor.ID != want || errors.Is(err, httpapi.ErrUnauthorized) != (want == "") {
				t.Errorf("%s: %s is of %q, want %q: %v", name, token, actor.ID, want, err)
			}
		}
	}
}

func TestAuthenticator(t *testing.T) {
	auth := func(r *http.Request) (relayer.Actor, error) {
		token, ok := httpapi.BearerToken(r)
		switch {
		case token == "alice", token == "bob":
			return relayer.Actor{ID: token}, nil
		case token == "no-id":
			return relayer.Actor{RequestID: "x"}, nil
		case token == "down":
			return relayer.Actor{}, fmt.Errorf("directory: %w", relayer.ErrUnavailable)
		case token == "broken":
			return relayer.Actor{}, errors.New("directory broke")
		case token == "panic":
			panic("directory broke")
		case ok == (token == ""):
			t.Errorf("BearerToken returned %q, %v", token, ok)
		}
		return relayer.Actor{}, fmt.Errorf("no such token: %w", httpapi.ErrUnauthorized)
	}
	s := serveAs(t, auth, nil, httpapi.WithRateLimit(0.01, 1))
	for _, c := range []struct {
		token string
		want  int
	}{
		{"mallory", 401}, {"mallory", 401}, {"no-id", 503}, {"down", 503}, {"broken", 503}, {"panic", 500}, {"", 401},
		{"alice", 200}, {"alice", 429}, {"bob", 200}, // each actor has its own rate
	} {
		s.expect(c.want, "GET", collection, "", as(c.token))
	}
}

func TestTrustHost(t *testing.T) {
	handler, manager := newAPI(t, httpapi.TrustHost(), httpapi.WithRateLimit(0.01, 1))
	s := serveHandler(t, manager, recorded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(relayer.WithActor(r.Context(), relayer.Actor{ID: r.Header.Get("X-User")})))
	})))
	for _, c := range []struct {
		user string
		want int
	}{{"alice", 200}, {"alice", 429}, {"bob", 200}, {"", 401}, {"", 401}} {
		s.expect(c.want, "GET", collection, "", with("Authorization"), with("X-User", c.user))
	}
}

func TestTokens_Invalid(t *testing.T) {
	const other = "other-0123456789"
	for name, byName := range map[string]map[string][]string{
		"no name":          nil,
		"no token":         {"alice": {}},
		"empty name":       {"": {validToken}},
		"short token":      {"alice": {validToken, "15-bytes-long-x"}},
		"empty token":      {"alice": {validToken}, "bob": {""}},
		"token with space": {"alice": {"two words that are long"}},
		"token not ASCII":  {"alice": {"é-0123456789012345"}},
		"token twice":      {"alice": {other, other}},
		"token of two":     {"alice": {other}, "bob": {other}},
	} {
		accepts, err := httpapi.Tokens(byName)
		if err == nil || accepts != nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), other) {
			t.Errorf("%s: %v quotes the token", name, err)
		}
	}
}

func TestNew_InvalidArguments(t *testing.T) {
	manager := managerOn(t, nil)
	for name, options := range map[string][]httpapi.Option{
		"client address":     {httpapi.WithClientAddress(nil)},
		"requests in flight": {httpapi.WithMaxInFlight(0)},
		"watchers":           {httpapi.WithMaxWatchers(-1)},
		"request logger":     {httpapi.WithRequestLog(nil)},
		"authorizer":         {httpapi.WithAuthorizer(nil)},
		"second authorizer":  {httpapi.WithAuthorizer(scopes), httpapi.WithAuthorizer(scopes)},
		"zero option":        {{}},
		"logger":             {httpapi.WithLogger(nil)},
		"body limit":         {httpapi.WithMaxBodyBytes(0)},
		"pending bytes":      {httpapi.WithMaxPendingBytes(0)},
		"rate":               {httpapi.WithRateLimit(0, 1)},
		"burst":              {httpapi.WithRateLimit(1, 0)},
	} {
		if handler, err := httpapi.New(manager, httpapi.TrustHost(), options...); err == nil || handler != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := httpapi.New(nil, httpapi.TrustHost()); err == nil {
		t.Error("no Manager: no error")
	}
	if _, err := httpapi.New(manager, nil); err == nil {
		t.Error("no Authenticator: no error")
	}
}

const (
	fullURL   = `{"url":"https://user:pw@rpc.example/v2/key?a=b","weight":0.5,"headers":{"X-Key":"header-secret"}}`
	maskedURL = `{"url":"https://rpc.example/***","weight":0.5,"headers":{"X-Key":"***"}}`
)

// TestReveal: get, list and stream have the full RPC URLs if the query asks for them, and
// nothing else differs.
func TestReveal(t *testing.T) {
	s := serve(t, httpapi.WithEngineOperations())
	w := openStream(t, http.DefaultClient, s.url, "?rpc_urls=full")
	w.wantResync()
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[` + fullURL + `,{"url":"wss://b.example"}]`))
	s.create(minimal(`,"id":"r-2"`))
	for _, path := range []string{one + "?", collection + "?", collection + "?after=&paused=false&", one + "/history?"} {
		masked, full := s.do("GET", path, ""), s.do("GET", path+"rpc_urls=full", "")
		if strings.Contains(path, "history") { // it has no full URL in any form
			if !strings.Contains(full.body, maskedURL) || strings.Contains(full.body, "/v2/key") {
				t.Errorf("%s: %s", path, full.body)
			}
			continue
		}
		if want := strings.Replace(masked.body, maskedURL, fullURL, 1); full.status != http.StatusOK || full.body != want || full.body == masked.body {
			t.Errorf("%s: %d %s\nwant %s", path, full.status, full.body, want)
		}
		if full.header.Get("ETag") != masked.header.Get("ETag") {
			t.Errorf("%s: the ETag is %s", path, full.header.Get("ETag"))
		}
	}
	if e := w.want("created", "r-1"); !strings.Contains(e.data, fullURL) {
		t.Errorf("the event is %s", e.data)
	}
	w.want("created", "r-2")
	tag := s.do("GET", one, "").header.Get("ETag")
	s.expect(http.StatusOK, "GET", one+"?rpc_urls=full", "", with("If-None-Match", tag)) // masked URLs have this tag too
	wantFailure(t, s.do("GET", collection+"/nobody?rpc_urls=full", ""), http.StatusNotFound, "Relayer with ID nobody not found")
}

// TestReveal_NotEnabled: without the option the parameter is unknown.
func TestReveal_NotEnabled(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[` + fullURL + `]`))
	for _, path := range []string{one, collection} {
		got := s.do("GET", path+"?rpc_urls=full", "")
		if !strings.Contains(got.body, maskedURL) || !strings.Contains(got.body, `the query parameter \"rpc_urls\" is unknown and was ignored`) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if strings.Contains(s.log.String(), "full RPC URLs") {
		t.Errorf("the log is %s", s.log)
	}
}

// reveals is an authorizer that permits the full URLs of the team payments to engines, and
// reads of all relayers to everyone.
func reveals(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	switch {
	case access.Action != relayer.ActionReveal:
		return allow()
	case access.Actor.ID == "engine":
		return httpapi.Allow(payments), nil
	default:
		return refuse()
	}
}

// TestReveal_Permission: the permissions of the read and of the full URLs must both hold.
func TestReveal_Permission(t *testing.T) {
	s := serveAs(t, anyToken, nil, httpapi.WithEngineOperations(), httpapi.WithAuthorizer(reveals))
	s.as("reader", "POST", collection, scopedBody("in-1", "payments"))
	s.as("reader", "POST", collection, scopedBody("out-1", "risk"))
	for _, path := range []string{collection, collection + "/in-1", collection + "/nobody", changes} {
		wantFailure(t, s.as("reader", "GET", path+"?rpc_urls=full", ""), http.StatusForbidden, "Forbidden")
		wantFailure(t, s.as("reader", "GET", path+"?%72pc_urls=%66ull&rpc_urls=x", ""), http.StatusForbidden, "Forbidden")
	}
	list := s.as("engine", "GET", collection+"?rpc_urls=full", "")
	if !strings.Contains(list.body, "in-1-secret") || strings.Contains(list.body, "out-1") || !strings.Contains(list.body, `"total_items":1}`) {
		t.Errorf("the list is %s", list.body)
	}
	wantFailure(t, s.as("engine", "GET", collection+"/out-1?rpc_urls=full", ""), http.StatusNotFound, "Relayer with ID out-1 not found")
	if got := s.as("engine", "GET", collection+"/out-1", ""); got.status != http.StatusOK || strings.Contains(got.body, "secret") {
		t.Errorf("without the parameter: %d %s", got.status, got.body)
	}
}

// TestReveal_Log: every permitted request for full URLs is logged with its actor, also those
// for an unknown ID.
func TestReveal_Log(t *testing.T) {
	s := serveAs(t, anyToken, nil, httpapi.WithEngineOperations(), httpapi.WithAuthorizer(reveals))
	s.as("reader", "POST", collection, scopedBody("in-1", "payments"))
	s.as("reader", "GET", collection, "")
	for _, c := range []struct{ actor, path, want string }{
		{"engine", collection + "/in-1", `principal=engine address=127.0.0.1 method=GET route="GET /api/v1/relayers/{relayer_id}" relayer_id=in-1`},
		{"engine", collection + "/nobody", `relayer_id=nobody`},
		{"engine", collection + "/path%20secret", `relayer_id=""`},
		{"engine", collection, `route="GET /api/v1/relayers" relayer_id=""`},
	} {
		before := len(s.log.String())
		s.as(c.actor, "GET", c.path+"?rpc_urls=full", "")
		line := s.log.String()[before:]
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `msg="full RPC URLs requested" request_id=`) || !strings.Contains(line, c.want) {
			t.Errorf("%s %s logged %q, want %s", c.actor, c.path, line, c.want)
		}
	}
	before := len(s.log.String())
	openStream(t, http.DefaultClient, s.url, "?rpc_urls=full", as("engine")).wantResync()
	if line := s.log.String()[before:]; !strings.Contains(line, `principal=engine address=127.0.0.1 method=GET route="GET /api/v1/relayers:watch" relayer_id=""`) {
		t.Errorf("the stream logged %q", line)
	}
}

// unopenable are keys that cannot open what they sealed.
type unopenable struct{ keyring.Keyring }

func (unopenable) Seal(_ context.Context, plaintext, _ []byte) ([]byte, error) {
	return append([]byte("sealed"), plaintext...), nil
}

func (unopenable) Open(context.Context, []byte, []byte) ([]byte, error) {
	return nil, errors.New("the key of https://keys.example/v2/key is gone")
}

// TestReveal_Sealed: the URLs of a relayer that cannot be opened are masked, and the response
// says so. The log has the cause once.
func TestReveal_Sealed(t *testing.T) {
	store := memory.New()
	clear := managerOn(t, store)
	s := serveManager(t, sealing(t, store, unopenable{}), validTokens, httpapi.WithEngineOperations())
	w := openStream(t, http.DefaultClient, s.url, "?rpc_urls=full&changes=true")
	w.wantResync()
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[` + fullURL + `]`))
	request := relayer.CreateRequest{
		ID: "r-2", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
		CustomRPCURLs: []relayer.RPCConfig{{URL: "https://rpc.example/v2/key"}},
	}
	must(clear.Create(t.Context(), request))(t)
	const sealed = `"sealed":["r-1"]`
	if e := w.want("created", "r-1"); !strings.Contains(e.data, maskedURL) || !strings.Contains(e.data, ","+sealed+",") {
		t.Errorf("the event is %s", e.data)
	}
	if log := s.log.String(); !strings.Contains(log, "RPC URLs cannot be opened") { // by the stream, and no other request
		t.Errorf("the log is %s", log)
	}
	for _, path := range []string{one, collection, collection + "?after="} {
		got := s.do("GET", withParameter(path, "rpc_urls=full"), "")
		if got.status != http.StatusOK || !strings.Contains(got.body, maskedURL) || strings.Count(got.body, sealed) != 1 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if e := w.want("created", "r-2"); strings.Contains(e.data, `"sealed"`) || !strings.Contains(e.data, "https://rpc.example/v2/key") {
		t.Errorf("the event is %s", e.data)
	}
	for _, path := range []string{collection + "/r-2?rpc_urls=full", one} {
		if got := s.do("GET", path, ""); strings.Contains(got.body, `"sealed"`) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	log := s.log.String()
	if strings.Count(log, "RPC URLs cannot be opened") != 1 || !strings.Contains(log, "the key of https://keys.example/*** is gone") {
		t.Errorf("the log is %s", log)
	}
}
