package httpapi

import (
	"container/list"
	"errors"
	"math"
	"sync"
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
	return Option{func(a *api) error {
		if !(perSecond > 0) || math.IsInf(perSecond, 1) || burst < 1 {
			return errors.New("httpapi: the rate must be more than 0 a second, with a burst of 1 or more")
		}
		a.limiter = newRateLimiter(perSecond, burst)
		return nil
	}}
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

// rateLimiter holds a token bucket for each principal.
type rateLimiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex
	buckets map[string]*list.Element
	recent  *list.List // of *bucket, the one used last in front
}

type bucket struct {
	principal string
	limiter   *rate.Limiter
}

func newRateLimiter(perSecond float64, burst int) *rateLimiter {
	return &rateLimiter{
		perSecond: rate.Limit(perSecond),
		burst:     burst,
		buckets:   make(map[string]*list.Element),
		recent:    list.New(),
	}
}

// wait returns how long the principal must wait before its next request: 0
// where it may go on, and then the request counts. A nil rateLimiter never
// holds anybody up.
func (l *rateLimiter) wait(principal string) time.Duration {
	if l == nil {
		return 0
	}
	now := time.Now()
	reservation := l.bucketOf(principal).ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > 0 {
		reservation.CancelAt(now)
	}
	return delay
}

func (l *rateLimiter) bucketOf(principal string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if element, ok := l.buckets[principal]; ok {
		l.recent.MoveToFront(element)
		return element.Value.(*bucket).limiter
	}
	if l.recent.Len() == maxPrincipals {
		forgotten := l.recent.Remove(l.recent.Back()).(*bucket)
		delete(l.buckets, forgotten.principal)
	}
	added := &bucket{principal: principal, limiter: rate.NewLimiter(l.perSecond, l.burst)}
	l.buckets[principal] = l.recent.PushFront(added)
	return added.limiter
}
