package mirror

import (
	"context"
	"errors"
	"time"

	"github.com/go-relayer/relayer/internal/wire"
)

// Option configures a [Mirror]. The zero Option is invalid.
type Option struct{ apply func(*settings) error }

type settings struct {
	maxAge  time.Duration
	onStale func(caughtUp time.Time, err error)
}

// heartbeat is the longest interval at which a source confirms that the view is complete.
const heartbeat = 5 * time.Second

// WithMaxAge calls onStale each time the view becomes older than a duration, whatever the
// reason: a program would stop to relay, for example. CaughtUp is that of [Mirror.CaughtUp],
// and err the last error of the source. It matches [relayer.ErrGap] while all relayers are read
// again, and is nil if none is known, as while a client connects again. The duration must be
// longer than 5 seconds, which is the longest interval of heartbeats: choose more than twice as
// much. OnStale is called on a goroutine of the Mirror, one call after the other, within a
// second, until the view is closed. No call reports that the view is current again: compare
// CaughtUp before each use. The last of [WithMaxAge] counts.
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

// watchAge checks the age every second, because timers stop with a machine that is suspended.
func (m *Mirror) watchAge(ctx context.Context) {
	wasStale := false
	for wire.Sleep(ctx, time.Second) {
		caughtUp := m.CaughtUp()
		isStale := time.Since(caughtUp) >= m.maxAge
		if isStale && !wasStale {
			_, err := m.state()
			m.onStale(caughtUp, err)
		}
		wasStale = isStale
	}
}

func (m *Mirror) state() (caughtUp time.Time, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.caughtUp, m.err
}
