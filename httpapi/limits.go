package httpapi

import (
	"context"
	"net/http"
	"time"
)

const (
	// defaultMaxInFlight is the limit of [WithMaxInFlight] if it is not set.
	defaultMaxInFlight = 1024

	// defaultMaxPendingBytes is the limit of [WithMaxPendingBytes] if it is not set. It
	// has room for five pages of the largest relayers.
	defaultMaxPendingBytes = 128 << 20

	// maxPageBuilds is how many pages are built concurrently. The size of a page is known,
	// and counted as pending, only after it is built.
	maxPageBuilds = 8

	// maxPageWait bounds the wait for other pages, for example if the store does not respond.
	maxPageWait = 5 * time.Second
)

// WithMaxInFlight sets how many requests are processed concurrently, at least 1.
// The default is 1,024. A request above the limit is rejected with 503 and
// Retry-After before authentication (load shedding).
//
// Every limit of the server is shared: a caller that already uses an eighth of it, and at
// least one, gets more only while half of the limit stays free, so that one caller can use
// half of it. A caller is an actor. Before its authentication, a request counts for the actor
// who sent the same credentials before, and otherwise for the client address (see
// [WithGuessLimit]).
func WithMaxInFlight(limit int) Option {
	return Option{func(s *settings) error { return setLimit(&s.inFlight.total, "requests in flight", int64(limit)) }}
}

// WithMaxPendingBytes sets how many bytes of request bodies may be processed, and of
// responses and events may wait for clients to read them, at least 1. The default is 128 MiB.
// It bounds the memory that clients occupy. A body counts with its length before it is read,
// and as one of [WithMaxBodyBytes] if its length is unknown. Above the limit
//
//   - a get or list is rejected with 503 and Retry-After;
//   - a create, patch or delete is rejected with 503 and Retry-After before it starts. Once
//     started, its response is sent, and may exceed the limit;
//   - a change stream ends with a resync event.
//
// A page, a relayer or a body that is larger than the limit is always rejected. At most 8
// pages are built concurrently, because their size is known only then. A list that waits for
// others longer than 5 seconds is rejected with 503 and Retry-After. Actors share both limits
// as [WithMaxInFlight] describes.
func WithMaxPendingBytes(limit int64) Option {
	return Option{func(s *settings) error { return setLimit(&s.pending.total, "pending bytes", limit) }}
}

// bytesLimited applies the limit of pending bytes to an endpoint. The bytes of the body are
// released when the request has been handled, those of the response when it has been written.
func (a *API) bytesLimited(handle endpoint) endpoint {
	return func(x *exchange, r *http.Request) response {
		if !a.pending.hasRoom(x.caller) {
			return a.refuse(x, r, a.pending)
		}
		p := handle(x, r)
		a.pending.release(x.caller, x.pendingBytes)
		x.pendingBytes = 0
		size := int64(len(p.body))
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !isRead {
			a.pending.acquire(x.caller, size)
		} else if !a.pending.tryAcquire(x.caller, size) {
			p, size = a.refuse(x, r, a.pending), 0
		}
		x.pendingBytes = size
		if size == 0 && cap(*x.buffer) > maxPooledBuffer {
			*x.buffer = nil // frees the memory before the response is written
		}
		return p
	}
}

// pagesLimited limits how many pages an endpoint builds concurrently.
func (a *API) pagesLimited(handle endpoint) endpoint {
	return func(x *exchange, r *http.Request) response {
		if !a.takePageSlot(x) {
			if x.Err() != nil {
				return overloaded()
			}
			return a.refuse(x, r, a.pages)
		}
		defer a.pages.release(x.caller, 1)
		return handle(x, r)
	}
}

// takePageSlot reports false if the context of the request is done, or no slot is free in
// time.
func (a *API) takePageSlot(x *exchange) bool {
	if a.pages.tryAcquire(x.caller, 1) {
		return true
	}
	ctx, cancel := context.WithTimeout(x, maxPageWait)
	defer cancel()
	return a.pages.wait(ctx, x.caller)
}

// overloaded returns the response to a request that is rejected because of a limit of the
// server.
func overloaded() response {
	return failure(http.StatusServiceUnavailable).withHeader("Retry-After", "1")
}
