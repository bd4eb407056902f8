package plan_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/plan"
)

const token = "test-token-0123456789"

// serve returns a client of a server. The middleware sees every request.
func serve(t *testing.T, m *relayer.Manager, middleware func(http.Handler) http.Handler) *client.Client {
	t.Helper()
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(m, authenticate, httpapi.WithRateLimit(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(middleware(api))
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, client.WithToken(token), client.WithRetries(2, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Connections are lost before and after the effect of requests. Applied again until it
// succeeds, a plan ends with the configuration.
func TestApply_LostConnections(t *testing.T) {
	m := newManager(t)
	create(t, m, fleet(30)...)
	if _, err := m.Disable(t.Context(), "r7", relayer.DisabledReason{Type: relayer.NonceSyncFailed}); err != nil {
		t.Fatal(err)
	}
	desired := fleet(60)[10:]
	for i := range desired[:10] {
		desired[i].Name = "new"
	}
	var reads, writes atomic.Int32
	c := serve(t, m, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			isRead := r.Method == http.MethodGet
			switch {
			case strings.HasSuffix(r.URL.Path, "/access"), r.URL.Query().Has("dry_run"):
			case isRead && reads.Add(1)%5 == 3: // repeated by the client
				panic(http.ErrAbortHandler)
			case isRead:
			default:
				write := writes.Add(1) % 9
				if write == 3 || write == 4 {
					next.ServeHTTP(httptest.NewRecorder(), r)
				}
				if write >= 3 {
					panic(http.ErrAbortHandler)
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	failures := 0
	for ; failures < 200; failures++ {
		p, err := plan.New(t.Context(), c, desired, plan.Options{Prune: true})
		if err == nil {
			_, err = p.Apply(t.Context(), plan.ApplyOptions{})
		}
		if err == nil {
			break
		}
	}
	if failures == 0 || failures == 200 {
		t.Errorf("%d failed runs", failures)
	}
	if got := get(t, m, "r10"); got.Name != "new" {
		t.Errorf("got %v", got)
	}
	expectNoChanges(t, m, desired)
}
