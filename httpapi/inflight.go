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

// inFlight counts what is in progress: requests, or streams.
type inFlight struct {
	limit   int64
	current atomic.Int64
}

// tryAcquire counts one more request, or reports false if the limit is reached.
// Each successful call is paired with a release.
func (f *inFlight) tryAcquire() bool {
	if f.current.Add(1) <= f.limit {
		return true
	}
	f.current.Add(-1)
	return false
}

func (f *inFlight) release() { f.current.Add(-1) }
