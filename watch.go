package relayer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"
)

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of change.
const (
	ChangeCreated ChangeKind = "created"
	ChangeUpdated ChangeKind = "updated"
	ChangeDeleted ChangeKind = "deleted"

	// ChangeHeartbeat is no change: it reports that the store is reachable, and that the
	// consumer has all changes up to now, except those in delivery. See
	// [WatchQuery.Heartbeat].
	ChangeHeartbeat ChangeKind = "heartbeat"
)

// Change is one change of one relayer.
type Change struct {
	Kind ChangeKind

	// Relayer is the relayer after the change, or its last state if it was deleted.
	// It is a copy for the consumer. A relayer that the query of the watch ceases to
	// select is deleted for the consumer, and has only ID and Revision.
	Relayer *Relayer

	// Position is the position of the change in the feed, for [WatchQuery.After]. It
	// is opaque, and empty if the feed cannot resume.
	Position string
}

// WatchQuery selects changes.
type WatchQuery struct {
	// Selector selects the relayers.
	Selector Selector

	// After is the [Change.Position] of an earlier change, after which the watch resumes.
	// If it is empty, the changes from the call on follow.
	After string

	// Heartbeat is the time without a change after which the sequence has a
	// [ChangeHeartbeat], without relayer and position, if the store is reachable. 0 is
	// never. A client passes on the heartbeats of its server, at the interval of the server.
	Heartbeat time.Duration
}

// Watch returns the changes of all writers to the store from the call on, or after a
// position, until ctx is done; it then ends without an error. Changes of one relayer are in
// the order of their revisions; those of different relayers may be in any order.
//
// A relayer that begins to match the selector is created, and one that ceases to match it
// is deleted, so that a consumer of the changes of a selection has exactly that selection.
// If the selector has a search, a relayer that begins to match may be updated instead, and
// one that never matched may be deleted.
//
// Any error ends the sequence. A writer never waits for a consumer: a consumer that falls
// too far behind, or resumes after a position that the store no longer has, gets [ErrGap].
// The limit is 1,024 changes or 16 MiB, or what the store retains. A consumer then calls
// Watch without a position again, and reads all relayers. The sequence can be ranged over
// once.
//
// To follow all relayers without a gap, call Watch first, then read [Manager.All],
// then range over the changes. Skip a relayer that was created or updated to a
// revision that is not above the one already known. Apply every deletion: it has the
// last revision of the relayer. Package mirror does this.
//
// The feeds of store/memory and store/bolt are in memory. They retain up to 1,024 changes
// or 16 MiB, and their positions are invalid after a restart. Positions of store/postgres
// are valid on every instance and after a restart.
func (m *Manager) Watch(ctx context.Context, query WatchQuery) iter.Seq2[Change, error] {
	return watch(ctx, m, query, m.decodeChange)
}

// watch returns the changes of a selection, converted.
func watch[T any](ctx context.Context, m *Manager, query WatchQuery, convert func(RecordChange) (T, error)) iter.Seq2[T, error] {
	selector, err := m.selection(query.Selector)
	if err != nil {
		return func(yield func(T, error) bool) {
			yield(*new(T), operationError(ActionWatch, "", err))
		}
	}
	changes := m.selectedChanges(ctx, selector, query)
	return func(yield func(T, error) bool) {
		for change, err := range changes {
			var converted T
			if err == nil {
				converted, err = convert(change)
			}
			if !yield(converted, operationError(ActionWatch, "", err)) || err != nil {
				return
			}
		}
	}
}

// selectedChanges returns the changes that the selector selects. With an interval of
// heartbeats, a goroutine reads them.
func (m *Manager) selectedChanges(ctx context.Context, selector Selector, query WatchQuery) iter.Seq2[RecordChange, error] {
	if query.Heartbeat <= 0 {
		return selector.changesOf(m.store.Watch(ctx, query.After))
	}
	ctx, cancel := context.WithCancel(ctx)
	changes := selector.changesOf(m.store.Watch(ctx, query.After))
	return func(yield func(RecordChange, error) bool) {
		elements := make(chan watchElement)
		defer func() {
			cancel()
			for range elements { // until the goroutine has ended
			}
		}()
		go func() {
			defer close(elements)
			defer func() {
				if cause := recover(); cause != nil {
					elements <- watchElement{panicked: fmt.Sprintf("%v\n\n%s", cause, debug.Stack())}
				}
			}()
			for change, err := range changes {
				elements <- watchElement{change: change, err: err}
			}
		}()
		heartbeat := time.NewTicker(query.Heartbeat)
		defer heartbeat.Stop()
		for {
			next, isOpen := m.nextElement(ctx, elements, heartbeat.C)
			if next.panicked != "" {
				panic(next.panicked) // where the consumer can recover it
			}
			if next.change.Kind != ChangeHeartbeat {
				heartbeat.Reset(query.Heartbeat)
			}
			if !isOpen || !yield(next.change, next.err) {
				return
			}
		}
	}
}

// watchElement is an element of a sequence of changes.
type watchElement struct {
	change   RecordChange
	err      error
	panicked string // the panic of the store, with its stack, that ended the sequence
}

// nextElement waits for an element, or for the time of a heartbeat. A heartbeat means that
// the consumer has all changes, so that an element comes first if both are there: the
// consumer may have been slow.
func (m *Manager) nextElement(ctx context.Context, elements <-chan watchElement, heartbeat <-chan time.Time) (next watchElement, isOpen bool) {
	for {
		select {
		case next, isOpen = <-elements:
			return next, isOpen
		case <-heartbeat:
		}
		isReachable := m.isReachable(ctx)
		select {
		case next, isOpen = <-elements:
			return next, isOpen
		default:
		}
		if isReachable {
			return watchElement{change: RecordChange{Kind: ChangeHeartbeat}}, true
		}
	}
}

// maxProbe bounds how long an unreachable store delays a change.
const maxProbe = time.Second

// isReachable reads from the store, because a store may wait for its database in Watch
// without an error.
func (m *Manager) isReachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, maxProbe)
	defer cancel()
	_, err := m.store.Get(ctx, "any")
	return err == nil || errors.Is(err, ErrNotFound)
}

// changesOf returns the changes as a consumer of the selection sees them.
func (s Selector) changesOf(changes iter.Seq2[RecordChange, error]) iter.Seq2[RecordChange, error] {
	if s.IsZero() {
		return changes
	}
	return func(yield func(RecordChange, error) bool) {
		for change, err := range changes {
			isSelected := true
			if err == nil {
				change, isSelected = s.changeOf(change)
			}
			if isSelected && !yield(change, err) {
				return
			}
		}
	}
}

// changeOf returns the change as a consumer of the selection sees it, or false if it is
// none for that consumer.
func (s Selector) changeOf(c RecordChange) (RecordChange, bool) {
	is := c.Kind != ChangeDeleted && s.matchesTerms(c.Record.ID, c.Record.Terms) && s.findsRecord(c.Record)
	was := c.Kind != ChangeCreated && s.matchesTerms(c.Record.ID, c.OldTerms) &&
		(c.Kind == ChangeUpdated || s.findsRecord(c.Record)) // the name before an update is unknown
	switch {
	case is && !was:
		c.Kind = ChangeCreated
	case was && !is && c.Kind == ChangeUpdated:
		c.Kind = ChangeDeleted
		c.Record = Record{ID: c.Record.ID, Revision: c.Record.Revision}
	}
	return c, is || was
}

func (m *Manager) decodeChange(c RecordChange) (Change, error) {
	if c.Kind == ChangeHeartbeat {
		return Change{Kind: c.Kind}, nil
	}
	if c.Record.Document == nil {
		return Change{c.Kind, &Relayer{ID: c.Record.ID, Revision: c.Record.Revision}, c.Position}, nil
	}
	r, err := m.relayerOf(c.Record)
	if err != nil {
		return Change{}, err
	}
	return Change{c.Kind, r, c.Position}, nil
}
