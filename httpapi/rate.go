package httpapi

import (
	"errors"
	"math"
	"time"

	"golang.org/x/time/rate"
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
	perSecond rate.Limit
	burst     int
	buckets   *recent[string, *rate.Limiter]
}

func newRateLimiter(perSecond float64, burst int) *rateLimiter {
	return &rateLimiter{
		perSecond: rate.Limit(perSecond),
		burst:     burst,
		buckets:   newRecent[string, *rate.Limiter](maxPrincipals),
	}
}

// wait returns how long the principal must wait before its next request: 0
// where it may go on, and then the request counts.
func (l *rateLimiter) wait(principal string) time.Duration {
	if l == nil {
		return 0
	}
	bucket := l.buckets.getOrMake(principal, func() *rate.Limiter { return rate.NewLimiter(l.perSecond, l.burst) })
	now := time.Now()
	reservation := bucket.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > 0 {
		reservation.CancelAt(now)
	}
	return delay
}
