package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// run follows the source, and begins again after every error, until ctx is done. An error
// before the view is complete for the first time, other than a gap, ends it. The wait between
// two attempts does not grow: a client as source has its own backoff.
func (m *Mirror) run(ctx context.Context) {
	defer close(m.done)
	for {
		m.err = m.follow(ctx)
		isRefused := !m.isOpen && !errors.Is(m.err, relayer.ErrGap)
		if isRefused || !wire.Sleep(ctx, wire.BackOff(4)) {
			return
		}
	}
}

// session is one read of all relayers, with the changes since its first page.
type session struct {
	mirror *Mirror

	mu    sync.Mutex
	early []relayer.Change // those that arrived before the last page
	next  *view            // is prepared; nil before the last page, and when it is current
	isNew bool             // the view of the mirror is that of the session

	// last is the position of the last page, whose request began at began and ended at ended.
	last         string
	began, ended time.Time
}

var errEnded = errors.New("the watch ended")

// follow reads all relayers and applies the changes since the first page, until the first error.
// The watch runs while the other pages are read, because the source retains a limited number of
// changes.
func (m *Mirror) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{mirror: m}
	first, err := s.page(ctx, "", maxPage)
	if err == nil && first.Position == "" {
		err = fmt.Errorf("the source has no positions: %w", errors.ErrUnsupported)
	}
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { cancel(s.watch(ctx, first.Position)) })
	if err := s.readAll(ctx, first); err != nil {
		cancel(err)
	}
	watching.Wait()
	return context.Cause(ctx)
}

func (s *session) watch(ctx context.Context, after string) error {
	query := relayer.WatchQuery{Selector: s.mirror.selector, After: after, Heartbeats: true}
	for change, err := range s.mirror.source.Watch(ctx, query) {
		if err != nil {
			return err
		}
		s.receive(change)
	}
	return errEnded
}

// maxPage is the size of the pages that a session requests: 100 relayers of 256 KiB fit into the
// 32 MiB that a client reads.
const maxPage = 100

func (s *session) page(ctx context.Context, after relayer.Cursor, perPage int) (*relayer.Page, error) {
	s.began = time.Now()
	page, err := s.mirror.source.List(ctx, relayer.ListQuery{Selector: s.mirror.selector, After: &after, PerPage: perPage})
	s.ended = time.Now()
	return page, err
}

func (s *session) readAll(ctx context.Context, page *relayer.Page) (err error) {
	next, first := newView(), page.Position
	for {
		for _, r := range page.Relayers {
			next.byID[r.ID] = r
		}
		if page.Next == "" {
			break
		}
		if page, err = s.page(ctx, page.Next, page.Pagination.PerPage); err != nil {
			return err
		}
	}
	next.sort()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.last = next, page.Position
	if s.last == first {
		s.publish(s.began)
	}
	for _, change := range s.early {
		s.apply(change)
	}
	s.early = nil
	return nil
}

func (s *session) receive(change relayer.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil && !s.isNew {
		s.early = append(s.early, change)
		return
	}
	s.apply(change)
}

// apply applies a change. A page shows later states than the first changes, which are
// therefore applied to the next view: it replaces the current one when it has all changes
// before the last page.
func (s *session) apply(change relayer.Change) {
	if s.isNew {
		s.mirror.apply(change)
		return
	}
	s.next.apply(change)
	switch {
	case change.Position == s.last && change.Time.Before(s.began):
		s.publish(s.began)
	case change.Position == s.last, change.Time.After(s.ended):
		s.publish(change.Time)
	}
}

// publish makes the next view the current one, and reports the differences.
func (s *session) publish(caughtUp time.Time) {
	m := s.mirror
	differing := s.next.adopt(m.view)
	m.mu.Lock()
	m.view, m.caughtUp = s.next, caughtUp
	m.mu.Unlock()
	s.next, s.isNew = nil, true
	if !m.isOpen {
		close(m.opened)
	}
	m.isOpen = true
	m.notify(differing...)
}

// apply applies a change to the current view. A change without a time does not show up to
// when the view is complete.
func (m *Mirror) apply(change relayer.Change) {
	m.mu.Lock()
	m.view.apply(change)
	if !change.Time.IsZero() {
		m.caughtUp = change.Time
	}
	m.mu.Unlock()
	if change.Relayer != nil {
		m.notify(change.Relayer.ID)
	}
}
