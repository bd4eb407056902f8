package wire

import (
	"context"
	"math/rand/v2"
	"time"
)

const longestBackOff = 5 * time.Second

// BackOff returns the wait before another attempt after a number of failures: exponential
// backoff with full jitter.
func BackOff(failures int) time.Duration {
	const first = 100 * time.Millisecond
	return rand.N(min(longestBackOff, first<<min(failures, 10)))
}

// Sleep reports false if ctx is done before the end.
func Sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-time.After(duration):
		return true
	case <-ctx.Done():
		return false
	}
}
