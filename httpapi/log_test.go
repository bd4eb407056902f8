package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

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
