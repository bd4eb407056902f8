package relayer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// ErrMissed comes out of [Manager.Watch] in place of changes that the consumer
// was too slow to take, or that the store could not tell. What it has
// in hand may be stale: it should read all relayers again. The changes that
// follow come after those missed.
var ErrMissed = errors.New("changes were missed")

// ChangeKind is what happened to a relayer.
type ChangeKind string

// The kinds of change.
const (
	Created ChangeKind = "created"
	Updated ChangeKind = "updated"
	Deleted ChangeKind = "deleted"
)

// Change is one change of one relayer.
type Change struct {
	Kind ChangeKind

	// Relayer is the relayer after the change, or, where it was deleted, as it
	// last stood. It is the consumer's own copy.
	Relayer *Relayer
}

// The most that is kept for a consumer of [Manager.Watch] that is behind.
const (
	maxWaitingChanges = 1024
	maxWaitingBytes   = 16 << 20
)

// RecordChange is one change of a record: the record after it, or, where it was
// deleted, as it last stood.
type RecordChange struct {
	Kind   ChangeKind
	Record Record
}

// Format prints the change with [Record.Private] masked, as [Record.Format] does.
// Without it fmt calls no method below a pointer if the verb is wrong for pointers.
func (c RecordChange) Format(state fmt.State, verb rune) {
	type plain RecordChange // without this method
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain(c))
}

// WatchStore is what a [Store] may offer beside its five methods where others
// write to the same records: the changes that anyone makes. The [Manager] finds
// out by itself and passes them on in [Manager.Watch].
type WatchStore interface {
	// Watch returns the changes made from the call on, in the order in which they
	// were made, until ctx is done. No writer waits for its consumer. Where
	// changes are lost it gives [ErrMissed] in their place and goes on with those
	// that follow; any other error ends it. Records that are imported are told as
	// created, or by ErrMissed. The sequence can be ranged over once.
	Watch(ctx context.Context) iter.Seq2[RecordChange, error]
}

// Watch returns the changes made from the call on, until ctx is done: those made
// through this Manager, or, on a [WatchStore], those made by anyone. Changes of
// one relayer come in the order of their revisions; those of different relayers
// may come in either order.
//
// A writer never waits for a consumer. One that falls behind is given [ErrMissed]
// instead of what it has missed, and then what came after: behind by more than
// 1024 changes or 16 MiB, or, on a WatchStore, further than that keeps changes.
// The sequence can be ranged over once.
//
// To follow all relayers without a gap, call Watch first, then read
// [Manager.All], then range over the changes. Leave out what was created or
// updated to a revision that is not above the one in hand; a deletion, which
// carries the revision that the relayer last stood at, always counts.
func (m *Manager) Watch(ctx context.Context) iter.Seq2[Change, error] {
	if store, ok := m.store.(WatchStore); ok {
		return decodedChanges(store.Watch(ctx))
	}
	w := m.watchers.add()
	forget := context.AfterFunc(ctx, func() { m.watchers.remove(w) })
	return func(yield func(Change, error) bool) {
		defer m.watchers.remove(w)
		defer forget()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.ended:
				return
			case <-w.wake:
			}
			waiting, missed := w.take()
			if missed && !yield(Change{}, ErrMissed) {
				return
			}
			for _, change := range waiting {
				if ctx.Err() != nil || !yield(change.decoded()) {
					return
				}
			}
		}
	}
}

func decodedChanges(changes iter.Seq2[RecordChange, error]) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for change, err := range changes {
			if err != nil {
				if !yield(Change{}, err) {
					return
				}
				continue
			}
			if !yield(change.decoded()) {
				return
			}
		}
	}
}

// decoded is for the consumer: what watching costs is its own affair and not the
// writer's.
func (c RecordChange) decoded() (Change, error) {
	r, err := relayerOf(c.Record)
	if err != nil {
		return Change{}, err
	}
	return Change{Kind: c.Kind, Relayer: r}, nil
}

func (c RecordChange) size() int { return len(c.Record.Document) + len(c.Record.Private) }

// watcher is what waits for one consumer.
type watcher struct {
	wake  chan struct{} // of 1: there is something to take
	ended chan struct{} // closed when no more will come

	mu      sync.Mutex
	waiting []RecordChange
	bytes   int
	missed  bool
}

func (w *watcher) put(change RecordChange) {
	w.mu.Lock()
	if len(w.waiting) == maxWaitingChanges || w.bytes+change.size() > maxWaitingBytes {
		w.waiting, w.bytes, w.missed = nil, 0, true
	} else {
		w.waiting = append(w.waiting, change)
		w.bytes += change.size()
	}
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) miss() {
	w.mu.Lock()
	w.waiting, w.bytes, w.missed = nil, 0, true
	w.mu.Unlock()
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() (waiting []RecordChange, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting, missed = w.waiting, w.missed
	w.waiting, w.bytes, w.missed = nil, 0, false
	return waiting, missed
}

// watchers are the consumers that are listening.
type watchers struct {
	mu  sync.Mutex
	all []*watcher
}

func (ws *watchers) add() *watcher {
	w := &watcher{wake: make(chan struct{}, 1), ended: make(chan struct{})}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
	return w
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if i := slices.Index(ws.all, w); i >= 0 {
		ws.all = slices.Delete(ws.all, i, i+1)
		close(w.ended)
		w.take()
	}
}

func (ws *watchers) publish(change RecordChange) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.all) == 0 {
		return
	}
	// The writer hands its bytes to its caller as well.
	change.Record.Document = slices.Clone(change.Record.Document)
	change.Record.Private = slices.Clone(change.Record.Private)
	for _, w := range ws.all {
		w.put(change)
	}
}

func (ws *watchers) miss() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		w.miss()
	}
}
