package httpapi

import (
	"errors"
	"math"
	"sync"
	"time"
)

// DefaultRate and DefaultBurst are how many gets and lists a principal may make
// in a second, and at once, unless [WithRateLimit] says otherwise.
const (
	DefaultRate  = 100.0
	DefaultBurst = 300
)

// WithRateLimit sets how many gets and lists each principal may make in a
// second, more than 0, and how many at once, at least 1. Creates are never
// limited (spec section 7).
func WithRateLimit(perSecond float64, burst int) Option {
	return Option{func(a *api) (err error) {
		a.limiter, err = rateLimiterOf(perSecond, burst)
		return err
	}}
}

func rateLimiterOf(perSecond float64, burst int) (*rateLimiter, error) {
	if !(perSecond > 0) || math.IsInf(perSecond, 1) || burst < 1 {
		return nil, errors.New("httpapi: a rate must be more than 0 a second, with a burst of 1 or more")
	}
	return newRateLimiter(perSecond, burst), nil
}

// WithoutRateLimit lets gets and lists be made without limit, for a host that
// limits them elsewhere.
func WithoutRateLimit() Option {
	return Option{func(a *api) error {
		a.limiter = nil
		return nil
	}}
}

// maxPrincipals bounds the memory of a rateLimiter. Past it the principal that
// has been quiet for longest is forgotten, which gives it a full burst again.
const maxPrincipals = 10_000

// rateLimiter holds a token bucket for each principal. A nil rateLimiter never
// holds anybody up.
type rateLimiter struct {
	perSecond float64
	burst     float64
	buckets   *recent[string, *bucket]
}

func newRateLimiter(perSecond float64, burst int) *rateLimiter {
	return &rateLimiter{
		perSecond: perSecond,
		burst:     float64(burst),
		buckets:   newRecent[string, *bucket](maxPrincipals),
	}
}

// wait takes a token of the principal and returns 0, or, if there is none, returns
// how long the principal must wait for one.
func (l *rateLimiter) wait(principal string) time.Duration {
	if l == nil {
		return 0
	}
	b := l.buckets.getOrMake(principal, func() *bucket { return &bucket{tokens: l.burst, refilled: time.Now()} })
	return b.take(l.perSecond, l.burst)
}

// bucket is a token bucket. It reads the clock while it holds its lock: the
// limiter of golang.org/x/time/rate is given the time, and a time that is stale
// under contention makes it count the same interval twice.
type bucket struct {
	mu       sync.Mutex
	tokens   float64
	refilled time.Time
}

func (b *bucket) take(perSecond, burst float64) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.tokens = min(burst, b.tokens+now.Sub(b.refilled).Seconds()*perSecond)
	b.refilled = now
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	return durationOf((1 - b.tokens) / perSecond)
}

// durationOf converts seconds, at least a nanosecond and at most what a Duration
// holds.
func durationOf(seconds float64) time.Duration {
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return max(time.Nanosecond, time.Duration(seconds*float64(time.Second)))
}
