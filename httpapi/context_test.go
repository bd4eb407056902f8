package httpapi_test

import (
	"bytes"
	"context"
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
	for _, name := range []string{"deadline", "gone client"} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			handler := apiOn(t, managerOn(t, waitingStore{memory.New()}), auth, httpapi.WithLogger(newLogger(&log)))
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			if name == "deadline" {
				ctx, cancel = context.WithTimeout(ctx, time.Second)
			} else {
				time.AfterFunc(time.Second, cancel)
			}
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
	for _, deadline := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			manager := managerOn(t, lossyStore{memory.New()})
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			got := serveHTTP(ctx, apiOn(t, manager, validTokens), "POST", collection, minimal(`,"id":"r-1"`))
			if got.Code != http.StatusInternalServerError {
				t.Errorf("a create with a deadline of %v returned %d, want 500", deadline, got.Code)
			}
			if _, err := manager.Get(t.Context(), "r-1"); err != nil {
				t.Errorf("the create had no effect: %v", err)
			}
		})
	}
}

// lossyStore stores, and does not learn the outcome within a minute.
type lossyStore struct{ relayer.Store }

func (s lossyStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := s.Store.Create(ctx, rec)
	if err != nil {
		return rec, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	return rec, relayer.ErrOutcomeUnknown
}
