package httpapi

import (
	"errors"
	"math"
	"sync"
	"time"
)

// The limit on reads without [WithRateLimit].
const (
	defaultRate  = 100.0
	defaultBurst = 300
)

// WithRateLimit sets how many reads each actor may start per second and at once, at least 1.
// The default is 100 per second and 300 at once. Reads are gets, lists, watches, and requests
// for full RPC URLs or for what the caller may do. Those that an [Authorizer] refuses count
// too. Writes have no rate limit. A rate and burst of 0 remove the limit, for a host that limits
// reads elsewhere.
func WithRateLimit(perSecond float64, burst int) Option {
	return Option{func(s *settings) (err error) {
		s.readLimiter = nil
		if perSecond != 0 || burst != 0 {
			s.readLimiter, err = rateLimiterOf(perSecond, burst)
		}
		return err
	}}
}

func rateLimiterOf(perSecond float64, burst int) (*rateLimiter, error) {
	if !(perSecond > 0) || math.IsInf(perSecond, 1) || burst < 1 {
		return nil, errors.New("httpapi: a rate limit must be more than 0 per second, with a burst of 1 or more")
	}
	return newRateLimiter(perSecond, burst), nil
}

// maxRateKeys bounds the memory of a rateLimiter. The bucket of the least recently
// used key is evicted, which gives that key a full burst again.
const maxRateKeys = 10_000

// rateLimiter has a token bucket for each key, such as a principal. A nil
// rateLimiter has no limit.
type rateLimiter struct {
	perSecond float64
	burst     float64
	buckets   *lru[string, *bucket]
}

func newRateLimiter(perSecond float64, burst int) *rateLimiter {
	return &rateLimiter{
		perSecond: perSecond,
		burst:     float64(burst),
		buckets:   newLRU[string, *bucket](maxRateKeys),
	}
}

// take takes a token from the bucket of the key and returns 0. If there is none it
// returns how long it takes until there is one.
func (l *rateLimiter) take(key string) (wait time.Duration) {
	if l == nil {
		return 0
	}
	b := l.buckets.getOrAdd(key, func() *bucket { return &bucket{tokens: l.burst, refilled: time.Now()} })
	return b.take(l.perSecond, l.burst)
}

// refund returns a token to the bucket of the key. An evicted bucket needs none: its
// key has a full burst again.
func (l *rateLimiter) refund(key string) {
	if b, ok := l.buckets.get(key); ok {
		b.refund(l.burst)
	}
}

// bucket is a token bucket. It reads the clock while it holds its lock. The limiter
// of golang.org/x/time/rate takes the time as an argument, and a time that is stale
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

func (b *bucket) refund(burst float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(burst, b.tokens+1)
}

// durationOf converts seconds to at least a nanosecond and at most the longest
// Duration.
func durationOf(seconds float64) time.Duration {
	if seconds >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return max(time.Nanosecond, time.Duration(seconds*float64(time.Second)))
}
