package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// newForbidding returns an API that permits lists only, its log, and a function that sends a
// request and expects a status.
func newForbidding(t *testing.T, options ...httpapi.Option) (api *httpapi.API, log *syncBuffer, expect func(actor, method, path string, status int)) {
	t.Helper()
	log = new(syncBuffer)
	permitsLists := func(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
		if access.Action == relayer.ActionList {
			return allow()
		}
		return refuse()
	}
	options = append(options, httpapi.WithLogger(newLogger(log)), httpapi.WithAuthorizer(permitsLists), httpapi.WithEngineOperations())
	api, _ = newAPI(t, anyToken, options...)
	return api, log, func(actor, method, path string, status int) {
		t.Helper()
		r := httptest.NewRequest(method, path, strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+actor)
		r.Header.Set("X-Request-Id", fmt.Sprint("of-", actor))
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%s %s of %s returned %d, want %d", method, path, actor, w.Code, status)
		}
	}
}

func forbiddenLine(actor, action, id string, count int) string {
	return fmt.Sprintf(`msg="requests forbidden" principal=%s address=192.0.2.1 request_id=of-%[1]s action=%s relayer_id=%s count=%d`, actor, action, id, count)
}

// TestForbidden_Log: of each actor and action, the first refusal is logged at once, and the
// later ones once a second with their count.
func TestForbidden_Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, log, expect := newForbidding(t)
		expectLines := func(want ...string) {
			t.Helper()
			synctest.Wait()
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			if len(lines) != len(want) {
				t.Fatalf("the log has %d lines, want %d: %s", len(lines), len(want), log)
			}
			for i, line := range lines {
				if !strings.HasSuffix(line, want[i]) {
					t.Errorf("line %d is %s, want %s", i, line, want[i])
				}
			}
		}
		for range 10 {
			expect("a", "GET", collection+"?rpc_urls=full", http.StatusForbidden)
			expect("b", "GET", collection+"?rpc_urls=full", http.StatusForbidden)
			expect("a", "PATCH", one, http.StatusForbidden)
			expect("a", "GET", collection, http.StatusOK)
			expect("a", "GET", "/api/v1/access", http.StatusOK)
		}
		expect("a", "PATCH", collection+"/path%20secret", http.StatusForbidden)
		want := []string{
			forbiddenLine("a", "reveal", `""`, 1), forbiddenLine("b", "reveal", `""`, 1), forbiddenLine("a", "update", "r-1", 1),
		}
		expectLines(want...)
		time.Sleep(time.Second)
		synctest.Wait()
		for _, line := range []string{forbiddenLine("a", "reveal", `""`, 9), forbiddenLine("b", "reveal", `""`, 9), forbiddenLine("a", "update", `""`, 10)} {
			if strings.Count(log.String(), line) != 1 {
				t.Errorf("the log has not the line %s: %s", line, log)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines != 6 {
			t.Errorf("the log has %d lines: %s", lines, log)
		}

		// After a second without refusals, the next one is logged at once.
		time.Sleep(2 * time.Second)
		log.Reset()
		expect("a", "DELETE", one, http.StatusForbidden)
		expect("a", "DELETE", one, http.StatusForbidden)
		expectLines(forbiddenLine("a", "delete", "r-1", 1))

		// Drain logs what was counted, and later refusals are logged at once.
		api.Drain()
		expectLines(forbiddenLine("a", "delete", "r-1", 1), forbiddenLine("a", "delete", "r-1", 1))
		expect("a", "DELETE", one, http.StatusForbidden)
		expectLines(forbiddenLine("a", "delete", "r-1", 1), forbiddenLine("a", "delete", "r-1", 1), forbiddenLine("a", "delete", "r-1", 1))
		time.Sleep(time.Minute)
		expectLines(forbiddenLine("a", "delete", "r-1", 1), forbiddenLine("a", "delete", "r-1", 1), forbiddenLine("a", "delete", "r-1", 1))
	})
}

// TestForbidden_Rate: refused gets, lists and streams count against the rate of their actor,
// and are not authorized above it. Refused writes do not count.
func TestForbidden_Rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, log, expect := newForbidding(t, httpapi.WithRateLimit(1, 3))
		for range 5 {
			expect("a", "PATCH", one, http.StatusForbidden)
		}
		expect("a", "GET", collection+"?rpc_urls=full", http.StatusForbidden)
		expect("a", "GET", one, http.StatusForbidden)
		expect("a", "GET", changes, http.StatusForbidden)
		for _, path := range []string{collection + "?rpc_urls=full", one, changes, collection, "/api/v1/access"} {
			expect("a", "GET", path, http.StatusTooManyRequests)
			expect("a", "HEAD", path, http.StatusTooManyRequests)
		}
		expect("b", "GET", one, http.StatusForbidden)
		time.Sleep(time.Second)
		expect("a", "GET", one, http.StatusForbidden)
		expect("a", "GET", collection, http.StatusTooManyRequests)
		time.Sleep(3 * time.Second) // all is logged
		counted := 0
		for line := range strings.Lines(log.String()) {
			var count int
			if _, text, ok := strings.Cut(line, "count="); ok {
				_, _ = fmt.Sscan(text, &count)
			}
			counted += count
		}
		if counted != 5+3+1+1 {
			t.Errorf("the log counts %d refusals: %s", counted, log)
		}
	})
}
