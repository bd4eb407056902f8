package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/go-relayer/relayer"
)

// heartbeat is the interval at which a Manager confirms that the view is complete.
const heartbeat = 5 * time.Second

// The delays before the source is read again: exponential backoff with jitter.
const (
	minDelay = 100 * time.Millisecond
	maxDelay = 5 * time.Second
)

// wait reports false if ctx is done before the end.
func wait(ctx context.Context, failures int) bool {
	limit := min(maxDelay, minDelay<<min(failures, 10))
	select {
	case <-time.After(limit/2 + rand.N(limit/2)):
		return true
	case <-ctx.Done():
		return false
	}
}

// run waits for the end of the follower, and then starts others, until ctx is done.
func (m *Mirror) run(ctx context.Context, f *follower) {
	defer close(m.ended)
	err := f.wait()
	for failures := 0; ; failures++ {
		m.mu.Lock()
		m.err = err
		m.mu.Unlock()
		if !wait(ctx, failures) {
			return
		}
		began := time.Now()
		if f, err = m.follow(ctx); err == nil {
			err = f.wait()
		}
		if time.Since(began) > 2*maxDelay {
			failures = 0
		}
	}
}

// follower applies the changes of the source to the view until the first error. It also
// applies those that arrive before all relayers are read, although others are missing.
type follower struct {
	mirror *Mirror
	ctx    context.Context // its cause is the error
	ended  chan struct{}

	// changed has the revisions of the last changes by ID until all relayers are read.
	// Then it is nil.
	changed map[string]uint64
}

var errEnded = errors.New("the watch ended")

// follow returns a follower after it has read all relayers. The watch begins before the
// read, so that no change is lost between them.
func (m *Mirror) follow(ctx context.Context) (*follower, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &follower{mirror: m, ctx: ctx, ended: make(chan struct{}), changed: make(map[string]uint64)}
	changes := m.source.Watch(ctx, relayer.WatchQuery{Selector: m.selector, Heartbeat: heartbeat})
	go func() {
		defer close(f.ended)
		cancel(f.applyAll(changes))
	}()
	read, err := m.readAll(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = f.finish(read)
	}
	if err != nil {
		cancel(err)
		return nil, f.wait()
	}
	return f, nil
}

// wait returns the error that ended the follower.
func (f *follower) wait() error {
	<-f.ended
	return context.Cause(f.ctx)
}

func (f *follower) applyAll(changes iter.Seq2[relayer.Change, error]) error {
	for change, err := range changes {
		if err != nil {
			return err
		}
		f.apply(change)
	}
	return errEnded
}

func (m *Mirror) readAll(ctx context.Context) (read []*relayer.Relayer, err error) {
	for r, err := range m.source.All(ctx, m.selector) {
		if err != nil {
			return nil, err
		}
		if r.Revision == 0 {
			return nil, fmt.Errorf("relayer %q: %w", r.ID, relayer.ErrNoRevision)
		}
		read = append(read, r)
	}
	return read, nil
}

// finish replaces the view by what was read and what has changed since.
func (f *follower) finish(read []*relayer.Relayer) error {
	m := f.mirror
	m.writing.Lock()
	defer m.writing.Unlock()
	merged, differing, err := m.view.merge(read, f.changed)
	if err != nil {
		return err
	}
	f.changed = nil
	m.mu.Lock()
	m.view, m.caughtUp, m.err = merged, time.Now(), nil
	m.mu.Unlock()
	m.notify(differing...)
	return nil
}

func (f *follower) apply(change relayer.Change) {
	m := f.mirror
	m.writing.Lock()
	defer m.writing.Unlock()
	isComplete, isHeartbeat := f.changed == nil, change.Kind == relayer.ChangeHeartbeat
	if !isComplete && !isHeartbeat {
		f.changed[change.Relayer.ID] = change.Relayer.Revision
	}
	m.mu.Lock()
	isNew := !isHeartbeat && m.view.apply(change)
	if isComplete {
		m.caughtUp, m.err = time.Now(), nil
	}
	m.mu.Unlock()
	if isNew {
		m.notify(change.Relayer.ID)
	}
}
