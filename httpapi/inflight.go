package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
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
func WithMaxInFlight(limit int) Option {
	return Option{func(s *settings) error { return setLimit(&s.inFlight.limit, "requests in flight", int64(limit)) }}
}

// WithMaxPendingBytes sets how many bytes of responses and events may wait for clients to
// read them, at least 1. The default is 128 MiB. It bounds the memory that slow clients
// occupy. Above the limit
//
//   - a get or list is rejected with 503 and Retry-After;
//   - a create, patch or delete is rejected with 503 and Retry-After before it starts. Once
//     started, its response is sent, and may exceed the limit;
//   - a change stream ends with a resync event.
//
// A page or a relayer that is larger than the limit is always rejected. At most 8 pages are
// built concurrently, because their size is known only then. A list that waits for others
// longer than 5 seconds is rejected with 503 and Retry-After.
func WithMaxPendingBytes(limit int64) Option {
	return Option{func(s *settings) error { return setLimit(&s.pending.limit, "pending bytes", limit) }}
}

// capacity limits how much of something is in use: requests, streams or bytes.
type capacity struct {
	limit int64
	used  atomic.Int64
}

// tryAcquire uses n more, or reports false if that would exceed the limit. Each successful
// call is paired with a release.
func (c *capacity) tryAcquire(n int64) bool {
	for {
		used := c.used.Load()
		if used+n > c.limit {
			return false
		}
		if c.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// acquire uses n more, even above the limit. Each call is paired with a release.
func (c *capacity) acquire(n int64) { c.used.Add(n) }

func (c *capacity) release(n int64) { c.used.Add(-n) }

func (c *capacity) isFull() bool { return c.used.Load() >= c.limit }

// bytesLimited applies the limit of pending bytes to an endpoint. The bytes are released when
// the response has been written.
func (a *API) bytesLimited(handle endpoint) endpoint {
	return func(x *exchange, r *http.Request) response {
		if a.pending.isFull() {
			return overloaded()
		}
		p := handle(x, r)
		size := int64(len(p.body))
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !isRead {
			a.pending.acquire(size)
		} else if !a.pending.tryAcquire(size) {
			p, size = overloaded(), 0
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
		if !a.takePageSlot(r.Context()) {
			return overloaded()
		}
		defer func() { <-a.pageSlots }()
		return handle(x, r)
	}
}

// takePageSlot reports false if ctx is done, or no slot is free in time.
func (a *API) takePageSlot(ctx context.Context) bool {
	select {
	case a.pageSlots <- struct{}{}:
		return true
	default:
	}
	select {
	case a.pageSlots <- struct{}{}:
		return true
	case <-time.After(maxPageWait):
	case <-ctx.Done():
	}
	return false
}

// overloaded returns the response to a request that is rejected because of a limit of the
// server.
func overloaded() response {
	return failure(http.StatusServiceUnavailable).withHeader("Retry-After", "1")
}
