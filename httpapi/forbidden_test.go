package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

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
