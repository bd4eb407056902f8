package wire

import (
	"context"
	"math/rand/v2"
	"time"
)

// BackOff returns the wait before another attempt after a number of failures: exponential
// backoff with full jitter.
func BackOff(failures int) time.Duration {
	const first, longest = 100 * time.Millisecond, 5 * time.Second
	return rand.N(min(longest, first<<min(failures, 10)))
}

// Sleep reports false if ctx ended it.
func Sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-time.After(duration):
		return true
	case <-ctx.Done():
		return false
	}
}

// ClockStep returns by how much the wall clock has advanced more than the monotonic clock since a
// time: it was set, or the monotonic clock stopped because the machine was suspended.
func ClockStep(since time.Time) time.Duration {
	now := time.Now()
	return now.Round(0).Sub(since.Round(0)) - now.Sub(since)
}
