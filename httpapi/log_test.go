package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func TestLog_Requests(t *testing.T) {
	log := new(syncBuffer)
	s := serve(t, httpapi.WithRequestLog(slog.New(slog.NewJSONHandler(log, nil))))
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://user:pw@rpc.example/v2/key"}]`))
	s.do("GET", collection+"/r-1?api_key=query-secret", "", with("X-Request-Id", "req-1"))
	s.do("GET", collection, "", with("Authorization", "Bearer wrong-token"))
	s.do("GET", "/path-secret", "")
	s.do("GET", collection+"/path-secret", "")

	var got []string
	for text := range strings.Lines(log.String()) {
		line := parse(t, text)
		for _, member := range []string{"request_id", "bytes", "took"} {
			if value := fmt.Sprint(line[member]); value == "<nil>" || value == "" || value == "0" {
				t.Errorf("%s is %q in %s", member, value, text)
			}
		}
		got = append(got, fmt.Sprint(line["msg"], " ", line["principal"], " ", line["method"], " ", line["route"], " ", line["relayer_id"], " ", line["status"]))
	}
	want := []string{
		"request alice POST POST /api/v1/relayers r-1 201", "request alice GET GET /api/v1/relayers/{relayer_id} r-1 200",
		"request  GET   401", "request alice GET /  404", "request alice GET GET /api/v1/relayers/{relayer_id}  404",
	}
	if !slices.Equal(got, want) || strings.Count(log.String(), `"request_id":"req-1"`) != 1 {
		t.Errorf("logged\n%q, want\n%q", got, want)
	}
	for _, secret := range []string{validToken, "wrong-token", "query-secret", "path-secret", "pw", "key"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s was logged: %s", secret, log)
		}
	}
}

// panickingHandler is a log handler that panics.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("handler broke") }

// TestLog_HandlerPanic: a panic in a log handler does not change a response.
func TestLog_HandlerPanic(t *testing.T) {
	broken := slog.New(panickingHandler{slog.NewTextHandler(io.Discard, nil)})
	s := serve(t, httpapi.WithLogger(broken), httpapi.WithRequestLog(broken), httpapi.WithEngineOperations())
	s.create(minimal(`,"id":"r-1"`))
	s.expect(http.StatusConflict, "POST", collection, minimal(`,"id":"r-1"`))
	for _, r := range authorizedRequests {
		if got := s.do(r.method, r.path, r.body); got.status >= 400 && got.status != http.StatusNotFound {
			t.Errorf("%s %s returned %d: %s", r.method, r.path, got.status, got.body)
		}
	}
	s.expect(http.StatusNotFound, "GET", one, "")

	down := managerOn(t, downStore{memory.New()})
	failing := serveManager(t, down, validTokens, httpapi.WithLogger(broken))
	wantFailure(t, failing.do("GET", collection, ""), http.StatusServiceUnavailable, "Service Unavailable")
}

// newForbidding returns an API that permits lists only, its log, a function that sends a request
// and expects a status, and its Drain.
func newForbidding(t *testing.T, options ...httpapi.Option) (log *syncBuffer, expect func(actor, method, path string, status int), drain func()) {
	t.Helper()
	log = new(syncBuffer)
	permitsLists := func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
		if access.Action == relayer.ActionList {
			return allow()
		}
		return refuse()
	}
	options = append(options, httpapi.WithLogger(newLogger(log)), httpapi.WithAuthorizer(permitsLists), httpapi.WithEngineOperations())
	api, _ := newAPI(t, anyToken, options...)
	return log, func(actor, method, path string, status int) {
		t.Helper()
		if got := serveHTTP(t.Context(), api, method, path, "{}", as(actor), with("X-Request-Id", "of-"+actor)).Code; got != status {
			t.Errorf("%s %s of %s returned %d, want %d", method, path, actor, got, status)
		}
	}, api.Drain
}

// TestForbidden_Log: refusals have a line a second for each actor and action, with their number. Drain
// writes the rest.
func TestForbidden_Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, expect, drain := newForbidding(t)
		nextSecond := func() {
			time.Sleep(time.Second + 1)
			synctest.Wait() // until the functions of the timers have returned
		}
		for _, c := range []struct{ method, path, want string }{
			{"GET", collection + "?rpc_urls=full", `route="GET /api/v1/relayers" action=reveal relayer_id=""`},
			{"PATCH", one, `route="PATCH /api/v1/relayers/{relayer_id}" action=update relayer_id=r-1`},
			{"DELETE", collection + "/path%20secret", `route="DELETE /api/v1/relayers/{relayer_id}" action=delete relayer_id=""`},
		} {
			log.Reset()
			expect("a", c.method, c.path, http.StatusForbidden)
			want := fmt.Sprintf("msg=\"request forbidden\" request_id=of-a principal=a address=192.0.2.1 method=%s %s count=1\n", c.method, c.want)
			if !strings.HasSuffix(log.String(), want) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the log is %s, want %s", log, want)
			}
		}
		nextSecond()
		log.Reset()
		expect("a", "GET", collection, http.StatusOK)
		for range 200 {
			expect("a", "PATCH", one, http.StatusForbidden)
		}
		expect("b", "PATCH", one, http.StatusForbidden)
		nextSecond()
		expect("a", "PATCH", one, http.StatusForbidden)
		expect("a", "PATCH", one, http.StatusForbidden)
		drain()
		synctest.Wait()
		expect("a", "PATCH", one, http.StatusForbidden)
		counts := regexp.MustCompile(`principal=(.).* (count=\d+)`).FindAllStringSubmatch(log.String(), -1)
		var got []string
		for _, line := range counts {
			got = append(got, line[1]+" "+line[2])
		}
		if want := []string{"a count=1", "b count=1", "a count=199", "a count=2", "a count=1"}; !slices.Equal(got, want) {
			t.Errorf("the lines are %q, want %q:\n%s", got, want, log)
		}
	})
}

// TestForbidden_Rate: refused gets, lists and streams count against the rate of their actor,
// and are not authorized above it. Refused writes do not count.
func TestForbidden_Rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, expect, _ := newForbidding(t, httpapi.WithRateLimit(1, 3))
		for range 5 {
			expect("a", "PATCH", one, http.StatusForbidden)
		}
		expect("a", "GET", collection+"?rpc_urls=full", http.StatusForbidden)
		expect("a", "GET", one, http.StatusForbidden)
		expect("a", "GET", changes, http.StatusForbidden)
		for _, path := range []string{collection + "?rpc_urls=full", one, changes, collection, allHistory, one + "/history", access} {
			expect("a", "GET", path, http.StatusTooManyRequests)
			expect("a", "HEAD", path, http.StatusTooManyRequests)
		}
		expect("b", "GET", one, http.StatusForbidden)
		time.Sleep(time.Second)
		expect("a", "GET", one, http.StatusForbidden)
		expect("a", "GET", collection, http.StatusTooManyRequests)
	})
}
