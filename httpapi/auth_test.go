package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	challenge        = "Bearer"
	challengeInvalid = `Bearer error="invalid_token"`
)

func TestAuthorizationHeader(t *testing.T) {
	s := serve(t)
	for _, values := range [][]string{
		{"Bearer " + validToken},
		{"bearer " + validToken},
		{"BEARER " + validToken},
		{"Bearer   " + validToken},
	} {
		if got := s.do("GET", collection, "", with("Authorization", values...)); got.status != http.StatusOK {
			t.Errorf("%q answered %d", values, got.status)
		}
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
		{[]string{"Token " + validToken}, challenge},
		{[]string{"Bearer" + validToken}, challenge},
		{[]string{"Bearer\t" + validToken}, challenge},
		{[]string{"Bearer," + validToken}, challenge},
		{[]string{"Basic x", "Basic y"}, challenge},
		{[]string{"Bearer " + validToken + "x"}, challengeInvalid},
		{[]string{"Bearer " + validToken[1:]}, challengeInvalid},
		{[]string{"Bearer " + strings.ToUpper(validToken)}, challengeInvalid},
		{[]string{"Bearer " + validToken + " " + validToken}, challengeInvalid},
		{[]string{"Bearer " + validToken + ","}, challengeInvalid},
		{[]string{"Bearer \"" + validToken + "\""}, challengeInvalid},
		{[]string{"Bearer Bearer " + validToken}, challengeInvalid},
		{[]string{"Bearer é"}, challengeInvalid},
		{[]string{"Bearer " + validToken, "Bearer " + validToken}, challengeInvalid},
		{[]string{"Bearer " + validToken, "Basic x"}, challengeInvalid},
		{[]string{"Basic x", "Bearer " + validToken}, challengeInvalid},
		{[]string{"Bearer " + strings.Repeat("x", 100_000)}, challengeInvalid},
	} {
		got := s.do("GET", collection, "", with("Authorization", c.values...))
		expectFailure(t, got, http.StatusUnauthorized, "Unauthorized")
		if got.header.Get("WWW-Authenticate") != c.want {
			t.Errorf("%.60q: WWW-Authenticate is %q, want %q", c.values, got.header.Get("WWW-Authenticate"), c.want)
		}
	}
	if got := s.do("GET", collection+"?access_token="+validToken, "", with("Authorization")); got.status != http.StatusUnauthorized {
		t.Errorf("a token in the query answered %d", got.status)
	}
}

func TestSeveralTokensAreValidAtOnce(t *testing.T) {
	s := serveAs(t, httpapi.Tokens("old", "new"), nil)
	for token, want := range map[string]int{"old": 200, "new": 200, "older": 401, "oldnew": 401} {
		if got := s.do("GET", collection, "", with("Authorization", "Bearer "+token)); got.status != want {
			t.Errorf("%s answered %d, want %d", token, got.status, want)
		}
	}
}

func TestAuthFunc(t *testing.T) {
	type contextKey struct{}
	auth := httpapi.AuthFunc(func(ctx context.Context, token string) (string, error) {
		switch token {
		case "alice", "bob":
			return token, nil
		case "down":
			return "", fmt.Errorf("directory: %w", relayer.ErrUnavailable)
		case "panic":
			panic("directory broke")
		case "":
			t.Error("asked about an empty token")
		}
		if ctx.Value(contextKey{}) != nil {
			t.Error("a context of nobody's")
		}
		return "", errors.New("no such token")
	})
	s := serveAs(t, auth, nil, httpapi.WithRateLimit(0.01, 1))
	for token, want := range map[string]int{"alice": 200, "mallory": 401, "down": 503, "panic": 500, "": 401} {
		if got := s.do("GET", collection, "", with("Authorization", "Bearer "+token)); got.status != want {
			t.Errorf("%s answered %d, want %d: %s", token, got.status, want, got.body)
		}
	}
	if got := s.do("GET", collection, "", with("Authorization", "Bearer alice")); got.status != http.StatusTooManyRequests {
		t.Errorf("alice over her rate answered %d", got.status)
	}
	if got := s.do("GET", collection, "", with("Authorization", "Bearer bob")); got.status != http.StatusOK {
		t.Errorf("bob, who has a rate of his own, answered %d", got.status)
	}
}

func TestTrustHost(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(manager, httpapi.TrustHost(), httpapi.WithRateLimit(0.01, 1))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(recorded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(httpapi.WithPrincipal(r.Context(), r.Header.Get("X-User"))))
	})))
	t.Cleanup(server.Close)
	s := &service{t: t, manager: manager, url: server.URL}
	for _, c := range []struct {
		user string
		want int
	}{{"alice", 200}, {"alice", 429}, {"bob", 200}, {"", 200}, {"", 429}} {
		if got := s.do("GET", collection, "", with("Authorization"), with("X-User", c.user)); got.status != c.want {
			t.Errorf("%q answered %d, want %d", c.user, got.status, c.want)
		}
	}
}

func TestNewRefusesWhatIsMissing(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func() (http.Handler, error){
		"manager":         func() (http.Handler, error) { return httpapi.New(nil, httpapi.TrustHost()) },
		"authenticator":   func() (http.Handler, error) { return httpapi.New(manager, nil) },
		"AuthFunc":        func() (http.Handler, error) { return httpapi.New(manager, httpapi.AuthFunc(nil)) },
		"no token":        func() (http.Handler, error) { return httpapi.New(manager, httpapi.Tokens()) },
		"empty token":     func() (http.Handler, error) { return httpapi.New(manager, httpapi.Tokens("a", "")) },
		"token of two":    func() (http.Handler, error) { return httpapi.New(manager, httpapi.Tokens("a b")) },
		"token not ASCII": func() (http.Handler, error) { return httpapi.New(manager, httpapi.Tokens("é")) },
		"client address": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithClientAddress(nil))
		},
		"guess rate": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithGuessLimit(0, 1))
		},
		"in flight": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithMaxInFlight(0))
		},
		"request logger": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithRequestLog(nil))
		},
		"zero option": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.Option{})
		},
		"logger": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithLogger(nil))
		},
		"body limit": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithMaxBodyBytes(0))
		},
		"rate": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithRateLimit(0, 1))
		},
		"burst": func() (http.Handler, error) {
			return httpapi.New(manager, httpapi.TrustHost(), httpapi.WithRateLimit(1, 0))
		},
	} {
		if handler, err := build(); err == nil || handler != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRateRecovers(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(50, 1))
	s.do("GET", collection, "")
	if got := s.do("GET", collection, ""); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Skip("this machine is too slow to send two requests within 20 ms")
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if s.do("GET", collection, "").status == http.StatusOK {
			return
		}
	}
	t.Error("the rate never recovered")
}

func TestRateOfAlmostNothing(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(1e-12, 1))
	s.do("GET", collection, "")
	if after := s.do("GET", collection, "").header.Get("Retry-After"); len(after) < 9 || after[0] == '-' {
		t.Errorf("Retry-After is %q", after)
	}
}

func TestDefaultRateAllowsABurstOf300(t *testing.T) {
	s := serve(t)
	for i := range httpapi.DefaultBurst {
		if got := s.do("GET", collection+"/nobody", ""); got.status != http.StatusNotFound {
			t.Fatalf("request %d answered %d", i+1, got.status)
		}
	}
	unlimited := serve(t, httpapi.WithoutRateLimit())
	for i := range 3 * httpapi.DefaultBurst {
		if got := unlimited.do("GET", collection+"/nobody", ""); got.status != http.StatusNotFound {
			t.Fatalf("without a limit, request %d answered %d", i+1, got.status)
		}
	}
}

// A log holds what is needed to find a fault, and no secret of the request.
func TestLogsHoldNoSecret(t *testing.T) {
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) { panic(errors.New("broke")) }
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{relayer.WithAddressResolver(resolve)})
	s.do("POST", collection+"?key=query-secret", minimal(`,"custom_rpc_urls":[{"url":"https://user-secret:pw@rpc.example/path-secret"}]`))
	log := s.log.String()
	if !strings.Contains(log, "broke") || !strings.Contains(log, "principal=token-1") {
		t.Errorf("the fault is not in the log: %s", log)
	}
	for _, secret := range []string{validToken, "query-secret", "user-secret", "path-secret"} {
		if strings.Contains(log, secret) {
			t.Errorf("%s is in the log: %s", secret, log)
		}
	}
}

// A fault is logged by its route: the path is the client's, who may have put
// anything into it.
func TestFaultsAreLoggedWithoutThePath(t *testing.T) {
	down := httpapi.AuthFunc(func(context.Context, string) (string, error) { return "", relayer.ErrUnavailable })
	s := serveAs(t, down, nil)
	s.do("GET", collection+"/https%3A%2F%2Frpc.example%2Fpath-secret", "")
	broken := serveManager(t, downManager(t), httpapi.Tokens(validToken))
	broken.do("GET", collection+"/path-secret?query-secret=1", "")
	for _, log := range []string{s.log.String(), broken.log.String()} {
		if !strings.Contains(log, "request failed") {
			t.Errorf("no fault was logged: %q", log)
		}
	}
}

func downManager(t *testing.T) *relayer.Manager {
	t.Helper()
	manager, err := relayer.New(downStore{memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

// raw sends bytes as they are, has finish say that there are no more, and
// returns the response.
func raw(t *testing.T, s *service, request string, finish func(*net.TCPConn) error) reply {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	if err := finish(connection.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(body)}
}

func TestRequestsThatNoClientWouldSend(t *testing.T) {
	s := serve(t)
	const headers = "Host: x\r\nAuthorization: Bearer " + validToken + "\r\nContent-Type: application/json\r\nConnection: close\r\n"
	// A client that closes its side ends a request that is not complete.
	hangUp := (*net.TCPConn).CloseWrite
	wait := func(*net.TCPConn) error { return nil }
	for name, c := range map[string]struct {
		request string
		finish  func(*net.TCPConn) error
		want    int
	}{
		"a body shorter than it says": {"POST " + collection + " HTTP/1.1\r\n" + headers + "Content-Length: 500\r\n\r\n" + minimal(""), hangUp, 400},
		"a chunk that ends early":     {"POST " + collection + " HTTP/1.1\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\nff\r\n{", hangUp, 400},
		"a path with a raw ..":        {"GET /api/v1/relayers/.. HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
		"the whole URL as target":     {"GET http://x" + collection + " HTTP/1.1\r\n" + headers + "\r\n", wait, 200},
		"CONNECT":                     {"CONNECT x:1 HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
		"a star as path":              {"GET * HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
	} {
		t.Run(name, func(t *testing.T) {
			got := raw(t, s, c.request, c.finish)
			if got.status != c.want {
				t.Errorf("answered %d, want %d: %s", got.status, c.want, got.body)
			}
			checkManners(t, "GET", got)
		})
	}
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}

func TestRacingCreatesOfOneID(t *testing.T) {
	s := serve(t)
	for round := range 10 {
		var wait sync.WaitGroup
		statuses := make([]int, 32)
		for i := range statuses {
			wait.Go(func() {
				body := strings.NewReader(minimal(fmt.Sprintf(`,"id":"r-%d","notification_id":"n-%d"`, round, i)))
				request, _ := http.NewRequest("POST", s.url+collection, body)
				request.Header.Set("Authorization", "Bearer "+validToken)
				request.Header.Set("Content-Type", "application/json")
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				statuses[i] = response.StatusCode
			})
		}
		wait.Wait()
		count := map[int]int{}
		for _, status := range statuses {
			count[status]++
		}
		if count[201] != 1 || count[409] != 31 {
			t.Errorf("round %d: the answers were %v", round, count)
		}
	}
}
