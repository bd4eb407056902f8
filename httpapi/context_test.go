package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// waitingStore is a store that does not respond before the context is done.
type waitingStore struct{ relayer.Store }

func (waitingStore) List(ctx context.Context, _ relayer.StoreQuery) (relayer.Listing, error) {
	<-ctx.Done()
	return relayer.Listing{}, ctx.Err()
}

// TestContext_Ended: an operation ends with the context of the request, whether the host
// has set a deadline or the client is gone, and its error is logged at level debug.
func TestContext_Ended(t *testing.T) {
	type key struct{}
	auth := func(r *http.Request) (relayer.Actor, error) {
		if r.Context().Value(key{}) != "value" {
			return relayer.Actor{}, httpapi.ErrUnauthorized
		}
		return relayer.Actor{ID: "alice"}, nil
	}
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		"gone client": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			handler := apiOn(t, managerOn(t, waitingStore{memory.New()}), auth, httpapi.WithLogger(newLogger(&log)))
			ctx, cancel := end(context.WithValue(t.Context(), key{}, "value"))
			defer cancel()
			begin := time.Now()
			got := serveHTTP(ctx, handler, "GET", collection, "")
			if took := time.Since(begin); got.Code != http.StatusServiceUnavailable || took != time.Second {
				t.Errorf("%s: returned %d after %v", name, got.Code, took)
			}
			if !strings.Contains(log.String(), `level=DEBUG msg="request failed"`) {
				t.Errorf("%s: log %q", name, log.String())
			}
		})
	}
}

// TestWrite_OutcomeUnknown: a write that may have taken effect is not reported as 503,
// which promises no effect, even if the context of the request is done.
func TestWrite_OutcomeUnknown(t *testing.T) {
	for _, deadline := range []time.Duration{time.Second, 0} {
		for _, c := range []struct{ method, path, body string }{
			{"POST", collection, minimal(`,"id":"r-2"`)},
			{"PATCH", collection + "/r-1", `{"paused":true}`},
			{"DELETE", collection + "/r-1", ""},
		} {
			t.Run(fmt.Sprintf("%s, deadline %v", c.method, deadline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stored := memory.New()
					handler := apiOn(t, managerOn(t, stored), validTokens)
					if got := serveHTTP(t.Context(), handler, "POST", collection, minimal(`,"id":"r-1"`)); got.Code != http.StatusCreated {
						t.Fatalf("create returned %d", got.Code)
					}
					before := serveHTTP(t.Context(), handler, "GET", collection, "").Body.String()
					ctx := t.Context()
					if deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, deadline)
						defer cancel()
					}
					lossy := apiOn(t, managerOn(t, lossyStore{stored}), validTokens)
					if got := serveHTTP(ctx, lossy, c.method, c.path, c.body); got.Code != http.StatusInternalServerError {
						t.Errorf("%s with a deadline of %v returned %d, want 500", c.method, deadline, got.Code)
					}
					if after := serveHTTP(t.Context(), handler, "GET", collection, "").Body.String(); after == before {
						t.Errorf("%s had no effect", c.method)
					}
				})
			})
		}
	}
}

// lossyStore stores, and does not learn the outcome before the end of the context, if it
// has a deadline.
type lossyStore struct{ relayer.Store }

func (s lossyStore) lose(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); ok {
		<-ctx.Done()
	}
	return relayer.ErrOutcomeUnknown
}

func (s lossyStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := s.Store.Create(ctx, rec)
	return rec, s.lose(ctx, err)
}

func (s lossyStore) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := s.Store.Update(ctx, rec)
	return rec, s.lose(ctx, err)
}

func (s lossyStore) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.lose(ctx, s.Store.Delete(ctx, id, revision, note))
}
