//go:build unix

package mirror

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
)

// flaky is a source whose watches end on demand.
type flaky struct {
	relayer.Registry

	mu   sync.Mutex
	life context.Context // of the present watches
	end  context.CancelCauseFunc
	down error
}

func newFlaky(source relayer.Registry) *flaky {
	s := &flaky{Registry: source}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// cut ends the present watches with an error.
func (s *flaky) cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(err)
	s.life, s.end = context.WithCancelCause(context.Background())
}

// setDown makes all reads and watches fail until it is called with nil.
func (s *flaky) setDown(err error) {
	s.mu.Lock()
	s.down = err
	s.mu.Unlock()
	if err != nil {
		s.cut(err)
	}
}

func (s *flaky) state() (life context.Context, down error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life, s.down
}

func (s *flaky) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if _, down := s.state(); down != nil {
		return nil, down
	}
	return s.Registry.List(ctx, query)
}

func (s *flaky) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	life, down := s.state()
	if down != nil {
		return func(yield func(relayer.Change, error) bool) { yield(relayer.Change{}, down) }
	}
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(life, cancel)
	changes := s.Registry.Watch(ctx, query)
	return func(yield func(relayer.Change, error) bool) {
		defer cancel()
		defer detach()
		for change, err := range changes {
			if life.Err() != nil {
				break
			}
			if !yield(change, err) {
				return
			}
		}
		if life.Err() != nil {
			yield(relayer.Change{}, context.Cause(life))
		}
	}
}

// deaf is a source that hides errors of watches, and with them the gaps.
type deaf struct{ relayer.Registry }

func (s deaf) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) {
		for ctx.Err() == nil {
			for change, err := range s.Registry.Watch(ctx, query) {
				if err != nil {
					break
				}
				if !yield(change, nil) {
					return
				}
			}
			query.After = "" // it begins again where the registry is now
			time.Sleep(time.Millisecond)
		}
	}
}

var errDown = errors.New("the registry is down")
