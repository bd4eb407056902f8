package relayer

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// runningWrites are the writes in progress of a Manager and its views.
type runningWrites struct {
	mu     sync.Mutex
	writes map[chan struct{}]bool // closed when the write has ended
}

// begin adds a write. The caller calls end when it has ended.
func (r *runningWrites) begin() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes == nil {
		r.writes = make(map[chan struct{}]bool)
	}
	ended := make(chan struct{})
	r.writes[ended] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.writes, ended)
		close(ended)
	}
}

// await waits until the writes that have begun have ended, or ctx is done.
func (r *runningWrites) await(ctx context.Context) error {
	r.mu.Lock()
	begun := slices.Collect(maps.Keys(r.writes))
	r.mu.Unlock()
	for _, ended := range begun {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
