package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// shareDivisor makes the share of a caller an eighth of a limit.
const shareDivisor = 8

// caller is whose share of a limit a request uses: that of the actor, or of the network of
// the client if the actor is not known.
type caller struct{ actor, network string }

// limit is a limit of the server: of requests, pages, streams or bytes. A caller that
// already uses an eighth of it, and at least one, gets more only while at least half of the
// limit stays free for others.
type limit struct {
	cause string // of its refusals
	total int64

	mu      sync.Mutex
	used    int64
	usedBy  map[caller]int64 // without callers that use nothing
	waiting []*waiter        // oldest first
	refused uint64
}

// waiter waits for one of a limit. The channel is closed when it has it.
type waiter struct {
	by       caller
	acquired chan struct{}
}

func newLimit(cause string, total int64) *limit {
	return &limit{cause: cause, total: total, usedBy: make(map[caller]int64)}
}

// permits reports whether the caller may use n more. The lock is held.
func (l *limit) permits(by caller, n int64) bool {
	used := l.used + n
	if l.usedBy[by] >= max(1, l.total/shareDivisor) {
		return used <= l.total/2
	}
	return used <= l.total
}

// use changes by n how much the caller uses. The lock is held.
func (l *limit) use(by caller, n int64) {
	l.used += n
	if now := l.usedBy[by] + n; now != 0 {
		l.usedBy[by] = now
	} else {
		delete(l.usedBy, by)
	}
}

// tryAcquire uses n more, or reports false if the caller may not. Each successful call is
// paired with a release.
func (l *limit) tryAcquire(by caller, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.permits(by, n) {
		return false
	}
	l.use(by, n)
	return true
}

// acquire uses n more, even above the limit. Each call is paired with a release.
func (l *limit) acquire(by caller, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(by, n)
}

func (l *limit) release(by caller, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(by, -n)
	if len(l.waiting) > 0 {
		l.waiting = slices.DeleteFunc(l.waiting, l.admit)
	}
}

// admit lets a waiter have one of the limit if its caller may. The lock is held.
func (l *limit) admit(w *waiter) bool {
	if !l.permits(w.by, 1) {
		return false
	}
	l.use(w.by, 1)
	close(w.acquired)
	return true
}

// hasRoom reports whether the caller may use more.
func (l *limit) hasRoom(by caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.permits(by, 1)
}

// move transfers n from one caller to another, or reports false and changes nothing if the
// other may not use it.
func (l *limit) move(from, to caller, n int64) bool {
	if from == to {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(from, -n)
	if !l.permits(to, n) {
		l.use(from, n)
		return false
	}
	l.use(to, n)
	return true
}

// wait uses one more as soon as the caller may. It reports false if ctx is done before.
// Waiters of one caller take their turns in order, and never block those of another.
func (l *limit) wait(ctx context.Context, by caller) bool {
	w := &waiter{by, make(chan struct{})}
	l.mu.Lock()
	if !l.admit(w) {
		l.waiting = append(l.waiting, w)
	}
	l.mu.Unlock()
	select {
	case <-w.acquired:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, w)
	if i < 0 {
		return true // acquired at the same time
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return false
}

// warningsPerSecond limits the log to one line a minute for each limit and actor.
const warningsPerSecond = 1.0 / 60

// Refusals returns how many requests and streams each limit of the server has refused, by
// its cause: "in_flight" ([WithMaxInFlight]), "pages" and "pending_bytes"
// ([WithMaxPendingBytes]), and "watchers" ([WithMaxWatchers]). Every cause is in the map,
// and its count only grows.
func (a *API) Refusals() map[string]uint64 {
	counts := make(map[string]uint64)
	for _, l := range []*limit{a.inFlight, a.pages, a.pending, a.watchers} {
		l.mu.Lock()
		counts[l.cause] = l.refused
		l.mu.Unlock()
	}
	return counts
}

// refuse counts and logs the refusal of a limit, and returns the response.
func (a *API) refuse(x *exchange, r *http.Request, l *limit) response {
	l.mu.Lock()
	l.refused++
	used, own := l.used, l.usedBy[x.caller]
	l.mu.Unlock()
	if a.warnings.take(l.cause+" "+x.actor.ID) == 0 {
		a.log(r.Context(), slog.LevelWarn, "refused because of a limit",
			slog.String("cause", l.cause),
			slog.String("request_id", x.requestID),
			slog.String("principal", x.actor.ID),
			slog.String("address", x.actor.Address),
			slog.Int64("used_by_principal", own),
			slog.Int64("used", used),
			slog.Int64("limit", l.total))
	}
	return overloaded()
}

// logSealed logs why RPC URLs could not be opened, at most once a minute for each relayer.
// That a later change has replaced them is no fault.
func (a *API) logSealed(x *exchange, documents ...relayer.Document) {
	for i := range documents {
		d := &documents[i]
		isFault := errors.Is(d.SealError, relayer.ErrSealed) || errors.Is(d.SealError, relayer.ErrCorrupt)
		if !isFault || a.warnings.take("sealed "+d.ID) > 0 {
			continue
		}
		a.log(x, slog.LevelWarn, "RPC URLs cannot be opened",
			slog.String("request_id", x.requestID),
			slog.String("relayer_id", d.ID),
			slog.String("error", mask.Text(d.SealError.Error())))
	}
}

// log calls the logger of the host. If its handler panics, there is no other logger to
// report to.
func (a *API) log(ctx context.Context, level slog.Level, message string, attributes ...slog.Attr) {
	defer func() { _ = recover() }()
	a.logger.LogAttrs(ctx, level, message, attributes...)
}

// callerOf returns whose share a request uses before its authentication: that of the actor
// who has sent its credentials before, or of the client's network. A network is that of the
// guess limit.
func callerOf(c credentials, address string) caller {
	if c.actor != "" {
		return caller{actor: c.actor}
	}
	return caller{network: networkOf(address)}
}
