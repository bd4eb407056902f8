package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/wire"
)

// Mirror is a view of relayers in memory. It is a [relayer.Reader]. All methods are safe for
// concurrent use, and none but Close waits for the registry.
type Mirror struct {
	source   relayer.Registry
	selector relayer.Selector

	consuming sync.Mutex // protects consumers
	consumers map[*consumer]struct{}

	mu       sync.RWMutex // the only writer, a session, reads the view without it
	view     *view
	caughtUp time.Time

	end    context.CancelFunc
	isOpen bool          // the view was complete once; only the present session uses it
	opened chan struct{} // closed when isOpen is set
	done   chan struct{} // closed when the source is no longer in use
	err    error         // of the last read; valid when done is closed
}

var _ relayer.Reader = (*Mirror)(nil)

// Open returns a view of the relayers that the selector selects. The source is a Manager, such as
// one of Within, or a client. Open waits for the first complete read of it, until ctx is done,
// and returns the error of that read, or one that matches [errors.ErrUnsupported] if the source
// has no cursors or positions. The view follows the source until [Mirror.Close], even after ctx
// is done.
func Open(ctx context.Context, source relayer.Registry, selector relayer.Selector) (*Mirror, error) {
	if source == nil {
		return nil, errors.New("mirror: source is nil")
	}
	if err := cmp.Or(selector.Err(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	m := &Mirror{
		source: source, selector: selector, view: newView(), consumers: make(map[*consumer]struct{}),
		end: end, opened: make(chan struct{}), done: make(chan struct{}),
	}
	go m.run(life)
	var err error
	select {
	case <-m.opened:
		return m, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-m.done:
		err = m.err
	}
	m.Close()
	return nil, fmt.Errorf("mirror: first read: %w", err)
}

// Close ends the view: it remains as it is, and its age grows. Close returns when the source
// is no longer in use. Further calls do nothing.
func (m *Mirror) Close() {
	m.end()
	<-m.done
}

// Get returns the relayer, which must not be modified, or [relayer.ErrNotFound].
func (m *Mirror) Get(_ context.Context, id string) (*relayer.Relayer, error) {
	found := m.find(id)
	if found == nil {
		return nil, fmt.Errorf("mirror: get %q: %w", mask.Shortened(id, limits.ID), relayer.ErrNotFound)
	}
	return found, nil
}

func (m *Mirror) find(id string) *relayer.Relayer {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.view.byID[id]
}

// All returns the selected relayers at one moment, in the order of their IDs. They must not be
// modified. It scans all relayers of the view. The sequence can be ranged over again.
func (m *Mirror) All(_ context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		if err := selector.Err(); err != nil {
			yield(nil, fmt.Errorf("mirror: list: %w", err))
			return
		}
		for _, r := range m.selected(selector) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *Mirror) selected(selector relayer.Selector) []*relayer.Relayer {
	m.mu.RLock()
	all := append([]*relayer.Relayer{}, m.view.ordered...)
	m.mu.RUnlock()
	return slices.DeleteFunc(all, func(r *relayer.Relayer) bool { return !selector.Matches(r) })
}

// List returns a page of the relayers that the query selects, in the order of All. They
// must not be modified. It returns a [*relayer.ValidationError] if the query is invalid.
// PerPage has no maximum. A page has no position. Its cursors are valid for every Mirror.
func (m *Mirror) List(_ context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if err := query.Validate(); err != nil {
		return nil, fmt.Errorf("mirror: list: %w", err)
	}
	rest, perPage := m.selected(query.Selector), cmp.Or(query.PerPage, relayer.DefaultPerPage)
	page := &relayer.Page{Pagination: relayer.Pagination{PerPage: perPage, TotalItems: len(rest)}}
	if query.After != nil {
		at, _ := search(rest, string(*query.After)+"\x00") // the first ID behind it
		rest = rest[at:]
	} else {
		page.Pagination.CurrentPage = max(query.Page, 1)
		skipped := min(page.Pagination.CurrentPage-1, len(rest)/perPage+1)
		rest = rest[min(skipped*perPage, len(rest)):]
	}
	page.Relayers = rest[:min(perPage, len(rest))]
	if query.After != nil && len(rest) > perPage {
		page.Next = relayer.Cursor(rest[perPage-1].ID)
	}
	return page, nil
}

// CaughtUp returns the time up to which the view is complete: the time of the last change,
// heartbeat or full read in it (see [relayer.Change.Time]). It is a lower bound, by the clock of
// this process. If the wall clock has since advanced more than the monotonic clock, as after a
// suspend, the result is earlier by the difference. So [time.Since] of the result is not less
// than the age of the view, unless the machine was suspended and its clock also set back. Call
// CaughtUp before Get: in the other order the state could be older than the time.
//
// A program that processes changes itself, as in the loop body of [Mirror.Changes], is behind the
// view: CaughtUp does not show what it has processed.
func (m *Mirror) CaughtUp() time.Time {
	m.mu.RLock()
	caughtUp := m.caughtUp
	m.mu.RUnlock()
	if step := wire.ClockStep(caughtUp); step > time.Millisecond { // less is the resolution of the two clocks
		return caughtUp.Add(-step)
	}
	return caughtUp
}
