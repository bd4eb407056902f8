package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/wire"
)

// Source is what a [Mirror] reads: a Manager, a view of one, or a client. Its All must
// return what was written before the call, and every relayer must have a revision.
type Source interface {
	relayer.Reader
	relayer.Watcher
}

// Mirror is a view of relayers in memory. It is a [relayer.Reader]. All methods are safe for
// concurrent use, and none waits for the registry.
type Mirror struct {
	source   Source
	selector relayer.Selector
	settings

	// writing is held by the only writer, which may take long to read the view and to
	// prepare the next one. It holds mu only while it changes what others read.
	writing   sync.Mutex
	consumers map[*consumer]struct{}

	mu       sync.RWMutex
	view     *view
	caughtUp time.Time
	err      error // of the source, since caughtUp

	ended chan struct{}
}

var _ relayer.Reader = (*Mirror)(nil)

// Open returns a view of the relayers that the selector selects, after the first complete
// read of the source. It returns the error of that read, or one that matches
// [relayer.ErrNoRevision] if the source has no revisions. The view follows the source until
// ctx is done, and then remains as it is: ctx is not the deadline of Open.
func Open(ctx context.Context, source Source, selector relayer.Selector, options ...Option) (*Mirror, error) {
	if source == nil {
		return nil, errors.New("mirror: source is nil")
	}
	if err := selector.Err(); err != nil {
		return nil, fmt.Errorf("mirror: %w", err)
	}
	m := &Mirror{
		source: source, selector: selector, view: newView(),
		consumers: make(map[*consumer]struct{}), ended: make(chan struct{}),
	}
	for _, option := range options {
		if option.apply == nil {
			return nil, errors.New("mirror: option is empty")
		}
		if err := option.apply(&m.settings); err != nil {
			return nil, err
		}
	}
	f, err := m.follow(ctx)
	for failures := 0; errors.Is(err, relayer.ErrGap) && wait(ctx, failures); failures++ {
		f, err = m.follow(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: first read: %w", err)
	}
	go m.run(ctx, f)
	if m.onStale != nil {
		go m.watchAge(ctx)
	}
	return m, nil
}

// Get returns the relayer, which must not be modified, or [relayer.ErrNotFound].
func (m *Mirror) Get(_ context.Context, id string) (*relayer.Relayer, error) {
	found := m.entry(id)
	if found == nil {
		return nil, fmt.Errorf("mirror: get %q: %w", mask.Shortened(id, relayer.MaxIDLength), relayer.ErrNotFound)
	}
	return found.Relayer, nil
}

func (m *Mirror) entry(id string) *entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.view.byID[id]
}

// Len returns the number of relayers.
func (m *Mirror) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.view.byID)
}

// All returns the relayers that the selector selects, which must not be modified, at one
// moment: in the order of the last complete read, and then in that in which they were
// created or began to match. The cost is that of the rarest value of signer, network,
// notification or label in the selector. The sequence can be ranged over again.
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

// selected sorts and checks the candidates outside of the lock.
func (m *Mirror) selected(selector relayer.Selector) []*relayer.Relayer {
	m.mu.RLock()
	candidates := m.view.candidates(selector)
	m.mu.RUnlock()
	sortByNumber(candidates)
	selected := make([]*relayer.Relayer, 0, len(candidates))
	for _, e := range candidates {
		if selector.Matches(e.Relayer) {
			selected = append(selected, e.Relayer)
		}
	}
	return selected
}

// List returns a page of the relayers that the query selects, in the order of All. They
// must not be modified. It returns a [*relayer.ValidationError] if the query is invalid. A
// page has any number of relayers.
func (m *Mirror) List(_ context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if err := cmp.Or(wire.CheckPage(query), query.Selector.Err()); err != nil {
		return nil, fmt.Errorf("mirror: list: %w", err)
	}
	page, perPage := max(query.Page, 1), cmp.Or(query.PerPage, relayer.DefaultPerPage)
	selected := m.selected(query.Selector)
	start := len(selected)
	if page-1 <= math.MaxInt/perPage {
		start = min(start, (page-1)*perPage)
	}
	return &relayer.Page{
		Relayers:   selected[start : start+min(perPage, len(selected)-start)],
		Pagination: relayer.Pagination{CurrentPage: page, PerPage: perPage, TotalItems: len(selected)},
	}, nil
}

// CaughtUp returns when the view was last known to be complete: at the end of a read of all
// relayers, or at a change or heartbeat since. Changes made shortly before may still be in
// delivery, and older ones while a source delivers many, as after a lost connection. A
// Manager confirms every 5 seconds that its store is reachable and that no change is missing,
// and a server of package httpapi every 15 seconds.
func (m *Mirror) CaughtUp() time.Time {
	caughtUp, _ := m.state()
	return caughtUp
}
