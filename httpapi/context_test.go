package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// slowStore waits before each operation, and returns early if its context is done.
type slowStore struct {
	relayer.Store
	wait time.Duration
}

func (s slowStore) delay(ctx context.Context) error {
	select {
	case <-time.After(s.wait):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slowStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := s.delay(ctx); err != nil {
		return relayer.Record{}, err
	}
	return s.Store.Create(ctx, rec)
}

func (s slowStore) Get(ctx context.Context, id string) (relayer.Record, error) {
	if err := s.delay(ctx); err != nil {
		return relayer.Record{}, err
	}
	return s.Store.Get(ctx, id)
}

func (s slowStore) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	if err := s.delay(ctx); err != nil {
		return nil, 0, err
	}
	return s.Store.List(ctx, offset, limit)
}

func slowManager(t *testing.T, wait time.Duration) *relayer.Manager {
	t.Helper()
	manager, err := relayer.New(slowStore{memory.New(), wait})
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

// TestRequestContext_HalfClosedClient: a client that closes its sending side after a
// complete request gets the response.
func TestRequestContext_HalfClosedClient(t *testing.T) {
	const wait = 50 * time.Millisecond // net/http cancels the context meanwhile
	auth := httpapi.AuthFunc(func(ctx context.Context, _ string) (string, error) {
		time.Sleep(wait)
		return "alice", ctx.Err()
	})
	s := serveManager(t, slowManager(t, wait), auth)
	request := func(method, path, body string) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			method, path, validToken, len(body), body)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", collection, minimal(`,"id":"r-1"`), http.StatusCreated},
		{"GET", collection, "", http.StatusOK},
		{"GET", collection + "/r-1", "", http.StatusOK},
		{"PATCH", collection + "/r-1", `{"paused":true}`, http.StatusOK},
		{"DELETE", collection + "/r-1", "", http.StatusOK},
		{"GET", collection + "/r-1", "", http.StatusNotFound},
	} {
		got := raw(t, s, request(c.method, c.path, c.body), (*net.TCPConn).CloseWrite)
		if got.status != c.want {
			t.Errorf("%s %s returned %d, want %d: %s", c.method, c.path, got.status, c.want, got.body)
		}
	}
}

// TestRequestContext_GoneClient: an operation for a client that is gone is canceled.
func TestRequestContext_GoneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, err := httpapi.New(slowManager(t, time.Hour), httpapi.TrustHost())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, "GET", collection, nil))
		if took := time.Since(begin); recorder.Code != http.StatusServiceUnavailable || took < 2*time.Second || took > time.Minute {
			t.Errorf("returned %d after %v", recorder.Code, took)
		}
	})
}

// TestRequestContext_Deadline: a deadline of the host is not delayed, and context
// values reach the hooks.
func TestRequestContext_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		auth := httpapi.AuthFunc(func(ctx context.Context, _ string) (string, error) {
			if ctx.Value(key{}) != "value" {
				return "", errors.New("no value in the context")
			}
			return "alice", nil
		})
		handler, err := httpapi.New(slowManager(t, time.Hour), auth)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer cancel()
		begin := time.Now()
		recorder := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(ctx, "GET", collection, nil)
		request.Header.Set("Authorization", "Bearer "+validToken)
		handler.ServeHTTP(recorder, request)
		if took := time.Since(begin); recorder.Code != http.StatusServiceUnavailable || took != time.Second {
			t.Errorf("returned %d after %v", recorder.Code, took)
		}
	})
}
