package mirror

import (
	"context"
	"errors"
	"time"
)

// Option configures a [Mirror]. The zero Option is invalid.
type Option struct{ apply func(*settings) error }

type settings struct {
	maxAge  time.Duration
	onStale func(caughtUp time.Time, err error)
}

// WithMaxAge calls onStale each time the view becomes older than a duration: a program would
// stop to relay, for example. CaughtUp is when the view was last known to be complete (see
// [Mirror.CaughtUp]), and err the last error of the source, or nil if none is known, as while
// a client connects again. Choose more than twice the interval of heartbeats; the duration
// must be longer than 5 seconds. OnStale is called on a goroutine of the Mirror, one call
// after the other. The last of [WithMaxAge] counts.
func WithMaxAge(maximum time.Duration, onStale func(caughtUp time.Time, err error)) Option {
	return Option{func(s *settings) error {
		if maximum <= heartbeat {
			return errors.New("mirror: the maximum age must be longer than 5 seconds")
		}
		if onStale == nil {
			return errors.New("mirror: the function for a stale view is nil")
		}
		s.maxAge, s.onStale = maximum, onStale
		return nil
	}}
}

func (m *Mirror) watchAge(ctx context.Context) {
	var reported time.Time
	for {
		caughtUp, err := m.state()
		age := time.Since(caughtUp)
		if age >= m.maxAge && caughtUp != reported {
			m.onStale(caughtUp, err)
			reported = caughtUp
		}
		remaining := m.maxAge - age
		if remaining <= 0 {
			remaining = heartbeat // not longer than the maximum age
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(remaining):
		}
	}
}

func (m *Mirror) state() (caughtUp time.Time, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.caughtUp, m.err
}
