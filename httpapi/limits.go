package httpapi

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"time"
)

// WithMaxInFlight sets how many requests are processed concurrently, at least 1. The default is
// 1,024. A request above the limit is rejected with 503 and Retry-After (load shedding), before
// or after authentication.
//
// Every limit of the server is shared: a caller that already uses an eighth of it, and at least
// one, gets more only while half of the limit stays free. So one caller can use about half of it.
// A caller is an actor, or before authentication a client address ([WithClientAddress]).
func WithMaxInFlight(limit int) Option {
	return option(limit >= 1, "the maximum of requests in flight must be at least 1", func(s *settings) { s.inFlight.total = int64(limit) })
}

// WithMaxPendingBytes sets the maximum, at least 1, of bytes of request bodies in process, and of
// responses and events that wait for clients to read them. The default is 128 MiB. A body counts
// with its length before it is read, or with [WithMaxBodyBytes] if the length is unknown. Above
// the limit a change stream ends with a resync event, and a request is rejected with 503 and
// Retry-After; the response to a write that has started is sent. If the response does not fit,
// the write is in flight until it is sent ([WithMaxInFlight]).
//
// At most 8 pages are built concurrently: their size is not known before. A list that waits for
// others longer than 5 seconds is rejected in the same way. Actors share both limits as
// [WithMaxInFlight] describes.
func WithMaxPendingBytes(limit int64) Option {
	return option(limit >= 1, "the maximum of pending bytes must be at least 1", func(s *settings) { s.pending.total = limit })
}

// caller is whose share of a limit a request uses: that of the actor, or of the client
// address if the actor is not known yet.
type caller struct{ actor, address string }

// limit is a limit of the server: of requests, pages, streams, bulks or bytes. A caller below an
// eighth may use all that is left.
type limit struct {
	cause string // of its refusals
	total int64

	mu      sync.Mutex
	used    int64
	usedBy  map[caller]int64 // without callers that use nothing
	changed sync.Cond        // of used; with mu
	refused uint64
}

func newLimit(cause string, total int64) *limit {
	l := &limit{cause: cause, total: total, usedBy: make(map[caller]int64)}
	l.changed.L = &l.mu
	return l
}

// tryAcquire uses n more, or reports false if the caller may not. What was acquired is given back
// by add.
func (l *limit) tryAcquire(by caller, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.use(by, n)
}

// use is tryAcquire while the lock is held.
func (l *limit) use(by caller, n int64) bool {
	most := l.total
	if l.usedBy[by] >= max(1, l.total/8) {
		most /= 2
	}
	if n > most-l.used { // the sum can overflow
		return false
	}
	l.change(by, n)
	return true
}

func (l *limit) change(by caller, n int64) {
	l.used += n
	if l.usedBy[by] += n; l.usedBy[by] == 0 {
		delete(l.usedBy, by)
	}
}

// add changes by n how much the caller uses, even above the limit.
func (l *limit) add(by caller, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(by, n)
	l.changed.Broadcast()
}

// wait uses one more as soon as the caller may, or reports false after 5 seconds or the end of
// ctx.
func (l *limit) wait(ctx context.Context, by caller) bool {
	if l.tryAcquire(by, 1) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.add(by, 0) })() // ends the wait
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.use(by, 1) {
		if ctx.Err() != nil {
			return false
		}
		l.changed.Wait()
	}
	return true
}

// withinPendingBytes counts the bytes of a response until it has been written, in place of those
// of the body. A read above the limit is refused. A write has happened: its response is sent, and
// the request remains in flight meanwhile, so its caller cannot use the bytes of others.
func (a *API) withinPendingBytes(x *exchange, p response) response {
	size := int64(len(p.body))
	more := size - x.pendingBytes
	isRead := x.request.Method == http.MethodGet || x.request.Method == http.MethodHead
	switch {
	case more <= 0:
		a.pending.add(x.caller, more)
	case a.pending.tryAcquire(x.caller, more):
	case isRead:
		*x.buffer = nil // frees the memory before the response is written
		return a.refuse(x, a.pending)
	default:
		x.isHeld = true
		return p
	}
	x.pendingBytes = size
	return p
}

// Refusals returns how many requests and streams each limit of the server has refused:
// "in_flight" ([WithMaxInFlight]), "pages" and "pending_bytes" ([WithMaxPendingBytes]),
// "watchers" ([WithMaxWatchers]), and "bulk" (8 pauses or resumes of several relayers at once).
// Every cause is in the map, and its count only grows.
func (a *API) Refusals() map[string]uint64 {
	counts := make(map[string]uint64)
	for _, l := range []*limit{a.inFlight, a.pages, a.pending, a.watchers, a.bulk} {
		l.mu.Lock()
		counts[l.cause] = l.refused
		l.mu.Unlock()
	}
	return counts
}

// refuse counts and logs the refusal of a limit, and returns the response.
func (a *API) refuse(x *exchange, l *limit) response {
	l.mu.Lock()
	l.refused++
	used, own := l.used, l.usedBy[x.caller]
	l.mu.Unlock()
	if a.warnings.take(l.cause+" "+x.actor.ID) == 0 {
		a.log(x, slog.LevelWarn, "refused because of a limit", slog.String("cause", l.cause),
			slog.Int64("used_by_principal", own), slog.Int64("used", used), slog.Int64("limit", l.total))
	}
	return overloaded()
}

// WithRateLimit sets how many reads each actor may start per second (above 0) and at once (1 or
// more). A read above the limit is rejected with 429 and Retry-After. The default is 100 per
// second and 300 at once. Reads are gets, lists, watches, and requests for full RPC URLs or for
// what the caller may do. Those that an [Authorizer] refuses count too. Writes have no rate
// limit. A rate and burst of 0 remove the limit, for a host that limits reads elsewhere.
func WithRateLimit(perSecond float64, burst int) Option {
	if perSecond == 0 && burst == 0 {
		return option(true, "", func(s *settings) { s.reads = nil })
	}
	isValid := perSecond > 0 && !math.IsInf(perSecond, 1) && burst >= 1
	return option(isValid, "a rate limit must be more than 0 per second, with a burst of 1 or more", func(s *settings) {
		s.reads = newRate(perSecond, burst)
	})
}

// rate has a token bucket for each key, such as an actor, by the generic cell rate algorithm:
// of a bucket only the time is stored at which it is full again. A nil rate has no limit.
type rate struct {
	interval time.Duration // between two tokens
	burst    time.Duration // of all tokens but one
	began    time.Time

	mu   sync.Mutex
	full map[string]time.Duration // since began
}

func newRate(perSecond float64, burst int) *rate {
	return &rate{
		interval: max(1, durationOf(1/perSecond)), burst: durationOf(float64(burst-1) / perSecond),
		began: time.Now(), full: make(map[string]time.Duration),
	}
}

// take takes a token from the bucket of the key and returns 0. If there is none it returns how
// long it takes until there is one. It reads the clock while it holds the lock: a time that is
// stale under contention would make the wait too long.
func (l *rate) take(key string) (wait time.Duration) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Since(l.began)
	full := max(now, l.full[key])
	if wait = full - now - l.burst; wait > 0 {
		return wait
	}
	if len(l.full) >= 10_000 { // bounds the memory
		clear(l.full)
	}
	l.full[key] = full + l.interval
	return 0
}

// durationOf converts seconds. It returns at most 73 years, so that sums do not overflow.
func durationOf(seconds float64) time.Duration {
	return time.Duration(min(seconds*float64(time.Second), math.MaxInt64/4))
}
