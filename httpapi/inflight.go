package httpapi

import (
	"errors"
	"sync/atomic"
)

// defaultMaxInFlight is the limit of [WithMaxInFlight] if it is not set.
const defaultMaxInFlight = 1024

// WithMaxInFlight sets how many requests are processed concurrently, at least 1.
// The default is 1,024. A request above the limit is rejected with 503 and
// Retry-After before authentication (load shedding).
func WithMaxInFlight(limit int) Option {
	return func(a *API) error {
		if limit < 1 {
			return errors.New("httpapi: the limit of requests in flight must be at least 1")
		}
		a.inFlight.limit = int64(limit)
		return nil
	}
}

// concurrencyLimit limits how many requests, or streams, are in progress.
type concurrencyLimit struct {
	limit   int64
	current atomic.Int64
}

// tryAcquire counts one more, or reports false if the limit is reached.
// Each successful call is paired with a release.
func (c *concurrencyLimit) tryAcquire() bool {
	if c.current.Add(1) <= c.limit {
		return true
	}
	c.current.Add(-1)
	return false
}

func (c *concurrencyLimit) release() { c.current.Add(-1) }
