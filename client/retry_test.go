package client_test

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

var busy = fail(503, "Service Unavailable", "Retry-After", "1")

func TestRetries_UntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, []client.Option{client.WithRetries(8, time.Minute)}, busy, fail(429, "Too Many Requests", "Retry-After", "3"), reset, html(502), html(521), respondJSON(200, `{"succ`), truncated(200), stored(t, evm("a"), 200, 7))
		start := time.Now()
		r, err := c.Get(t.Context(), "a")
		if err != nil || r.Revision != 7 {
			t.Fatalf("%v, error %v", r, err)
		}
		if waited := time.Since(start); waited < 4*time.Second || waited > 20*time.Second {
			t.Errorf("waited %s, want the 1 s and 3 s of Retry-After and a backoff", waited)
		}
		if got := s.methods(); got != "GET GET GET GET GET GET GET GET" {
			t.Errorf("sent %s", got)
		}
		for _, request := range s.seen {
			if request.header.Get("X-Request-Id") != s.seen[0].header.Get("X-Request-Id") || request.header.Get("X-Request-Id") == "" {
				t.Error("the attempts of one call have no common request ID")
			}
		}
	})
}

func TestRetries_Limits(t *testing.T) {
	tests := map[string]struct {
		options  []client.Option
		deadline time.Duration
		step     step
		most     time.Duration
		attempts int
	}{
		"default":                 {nil, 0, busy, 10 * time.Second, 5},
		"attempts":                {[]client.Option{client.WithRetries(2, time.Hour)}, 0, busy, 3 * time.Second, 2},
		"no retries":              {once, 0, busy, 0, 1},
		"time":                    {[]client.Option{client.WithRetries(100, 3*time.Second)}, 0, busy, 3 * time.Second, 0},
		"a wait beyond the time":  {nil, 0, fail(429, "", "Retry-After", "31"), 0, 1},
		"a wait of years":         {nil, 0, fail(429, "", "Retry-After", "99999999999"), 0, 1},
		"a wait for the deadline": {nil, 2 * time.Second, fail(429, "", "Retry-After", "3"), 0, 1},
		"resets":                  {nil, 0, reset, 2 * time.Second, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				c, s := scripted(t, test.options, test.step)
				start := time.Now()
				_, err := c.Get(ctx, "a")
				limited, ok := errors.AsType[*client.ResponseError](err)
				if (!ok || limited.Status != 429) && !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("the error is %v", err)
				}
				if waited := time.Since(start); waited > test.most {
					t.Errorf("waited %s", waited)
				}
				if test.attempts > 0 && len(s.seen) != test.attempts {
					t.Errorf("sent %d requests, want %d", len(s.seen), test.attempts)
				}
			})
		})
	}
}

func TestRetries_ContextFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		c, s := scripted(t, nil, busy)
		start := time.Now()
		if _, err := c.Create(ctx, evm("a")); !errors.Is(err, context.Canceled) || errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("the error is %v", err)
		}
		if waited := time.Since(start); waited != 500*time.Millisecond || len(s.seen) != 1 {
			t.Errorf("returned after %s and %d requests", waited, len(s.seen))
		}
		if _, err := c.Get(ctx, "a"); !errors.Is(err, context.Canceled) || len(s.seen) != 1 {
			t.Errorf("a call with a canceled context: error %v, %d requests", err, len(s.seen))
		}
	})
}

// blocked never responds.
func blocked(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestWithTimeout_NoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := []client.Option{client.WithTimeout(2 * time.Second), client.WithRetries(3, time.Minute)}
		c, s := scripted(t, options, blocked)
		start := time.Now()
		_, err := c.Get(t.Context(), "a")
		if !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no response within 2s") {
			t.Errorf("the error is %v", err)
		}
		if waited := time.Since(start); len(s.seen) != 3 || waited < 6*time.Second || waited > 7*time.Second {
			t.Errorf("%d requests in %s", len(s.seen), waited)
		}
		c, _ = scripted(t, options, blocked)
		if err := c.Delete(t.Context(), "a"); !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("a delete without a response: error %v", err)
		}
	})
}

// TestRetries_WriteNotSent sends a create to a server that is reachable only later. Until
// then, connections go to a port that is closed and that the system assigns to no listener.
func TestRetries_WriteNotSent(t *testing.T) {
	server := httptest.NewServer(handlerOf(t, newManager(t)))
	t.Cleanup(server.Close)
	var refused atomic.Int64
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if refused.Add(-1) >= 0 {
			address = "127.0.0.1:1"
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	options := []client.Option{client.WithHTTPClient(&http.Client{Transport: transport}), client.WithRetries(4, time.Minute)}
	c := newClient(t, server.URL, options...)
	refused.Store(math.MaxInt64)
	if _, err := c.Patch(t.Context(), "a", []byte(`{"name":"b"}`)); !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("a patch that was not sent: error %v", err)
	}
	refused.Store(2)
	if _, err := c.Create(t.Context(), evm("a")); err != nil {
		t.Error(err)
	}
}

// A connection that is lost after it was made does not show whether the write was processed.
func TestRetries_WriteSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	if err := newClient(t, server.URL, once...).Delete(t.Context(), "a"); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("error %v", err)
	}
}
