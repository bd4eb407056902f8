package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

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
