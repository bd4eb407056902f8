package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// TestMaxPendingBytes_LargeRelayer: a relayer above the limit cannot be read, but the
// response to a write that has taken effect is sent.
func TestMaxPendingBytes_LargeRelayer(t *testing.T) {
	s := serve(t, httpapi.WithMaxPendingBytes(1000))
	createIn(t, s.manager, "r-1", strings.Repeat("n", 1000))
	wantFailure(t, s.do("GET", collection+"/r-1", ""), http.StatusServiceUnavailable, "Service Unavailable")
	for range 3 {
		got := s.do("PATCH", collection+"/r-1", `{"paused":true}`)
		if got.status != http.StatusOK || len(got.body) < 1000 {
			t.Errorf("patch returned %d with %d bytes", got.status, len(got.body))
		}
	}
	s.do("PATCH", collection+"/r-1", `{"name":"small"}`)
	s.expect(http.StatusOK, "GET", collection+"/r-1", "")
}

// TestMaxPendingBytes_Followers: of many followers that do not read, the limit has room for one
// event. The streams of the others end with a resync event. The bytes are released with the client.
func TestMaxPendingBytes_Followers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, limit = 2000, 5000 // one caller may use half of it: one such relayer
		manager, api, first := watchInBubble(t, validTokens, httpapi.WithMaxPendingBytes(limit))
		followers := []*stream{first, first.listener.watch(t, ""), first.listener.watch(t, "")}
		for _, w := range followers {
			w.wantResync()
		}
		createIn(t, manager, "r-1", strings.Repeat("n", name))
		synctest.Wait()
		list := func() int { return serveHTTP(t.Context(), api, "GET", collection, "").Code }
		if status := list(); status != http.StatusServiceUnavailable {
			t.Errorf("with a pending event: list returned %d, want 503", status)
		}
		var complete *stream
		for i, w := range followers {
			switch e := w.next(); {
			case e.name == "created" && complete == nil:
				complete = w
			case e.name != "resync":
				t.Errorf("client %d got %+v", i, e)
			default:
				if e, err := w.read(); err == nil {
					t.Errorf("client %d got %+v after the resync", i, e)
				}
			}
		}
		if complete == nil {
			t.Fatal("no client got the event")
		}
		createIn(t, manager, "r-2", strings.Repeat("n", name)) // the client does not read this one
		synctest.Wait()
		if status := list(); status != http.StatusServiceUnavailable {
			t.Errorf("with another pending event: list returned %d, want 503", status)
		}
		complete.cancel()
		synctest.Wait()
		if got := serveHTTP(t.Context(), api, "GET", collection+"/r-1", "").Code; got != http.StatusOK {
			t.Errorf("without the client: get returned %d, want 200", got)
		}
	})
}

// blockedLists is a store whose List blocks until it is released.
type blockedLists struct {
	relayer.Store
	entered atomic.Int32
	release chan struct{}
}

func (s *blockedLists) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.entered.Add(1)
	<-s.release
	return s.Store.List(ctx, query)
}

// TestMaxPendingBytes_Bodies: a body counts until its request has been handled, also while
// its client sends it slowly. One of unknown length counts as the largest.
func TestMaxPendingBytes_Bodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const largest = 2 << 10
		manager := managerOn(t, nil)
		api := apiOn(t, manager, anyToken, httpapi.WithMaxPendingBytes(8*largest), httpapi.WithMaxBodyBytes(largest))
		slow, complete := io.Pipe()
		var running sync.WaitGroup
		send := func(actor string, length int64, body io.Reader) *result {
			request := newRequest(t.Context(), "POST", collection, "", as(actor))
			request.Body, request.ContentLength = io.NopCloser(body), length
			return begin(&running, func() int { return statusOf(api, request) })
		}
		expect := func(want int, got *result) {
			t.Helper()
			if status := got.get(); status != want {
				t.Errorf("got %d, want %d", status, want)
			}
		}
		const blocked, unknown = 0, -1
		for range 8 {
			expect(blocked, send("greedy", largest/2, slow))
		}
		expect(http.StatusServiceUnavailable, send("greedy", largest/2, slow))
		expect(http.StatusRequestEntityTooLarge, send("modest", largest+1, slow))
		expect(blocked, send("modest", unknown, slow))
		expect(http.StatusServiceUnavailable, send("modest", 1, slow))
		expect(http.StatusCreated, send("other", unknown, strings.NewReader(minimal(""))))
		_ = complete.CloseWithError(io.ErrUnexpectedEOF)
		running.Wait()
		for range 3 {
			expect(http.StatusCreated, send("greedy", unknown, strings.NewReader(minimal(""))))
		}
		if refused := api.Refusals()["pending_bytes"]; refused != 2 {
			t.Errorf("%d refusals, want 2", refused)
		}
	})
}
