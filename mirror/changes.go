package mirror

import (
	"context"
	"iter"
	"sync"

	"github.com/go-relayer/relayer"
)

// Change is a transition of one relayer. The relayers must not be modified.
type Change struct {
	// Kind is [relayer.ChangeCreated], [relayer.ChangeUpdated] or [relayer.ChangeDeleted].
	Kind relayer.ChangeKind

	// Before is the relayer before the change, and After the one after it. Before is nil
	// if it was created, and After is nil if it was deleted.
	Before, After *relayer.Relayer
}

// Changes returns the relayers of the view as created, and then every transition, until ctx
// or that of [Open] is done. So the changes, applied to an empty map, give the view. A
// relayer that ceases to match the selector of the view is deleted.
//
// The changes of one relayer are in order. A relayer that was deleted and created again is
// reported as both. After a gap the differences are reported, deletions first: what
// happened between is unknown, and a relayer that was created again with the same network
// and signer is updated.
//
// No writer waits for a consumer. The transitions of one relayer are combined until the
// consumer takes them; until then the IDs of changed relayers are in memory. Every range
// over the sequence begins again with the relayers of the view.
func (m *Mirror) Changes(ctx context.Context) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		c := m.register()
		defer m.unregister(c)
		for ctx.Err() == nil {
			id, isQueued := c.next()
			if isQueued {
				if !c.report(id, m.entry(id), yield) {
					return
				}
				continue
			}
			select {
			case <-c.wake:
			case <-ctx.Done():
			case <-m.ended:
				return
			}
		}
	}
}

// consumer is one range over Changes.
type consumer struct {
	reported map[string]*entry
	wake     chan struct{}

	mu     sync.Mutex
	queue  []string // IDs of relayers that may differ from what was reported
	queued map[string]struct{}
}

func (m *Mirror) register() *consumer {
	c := &consumer{reported: make(map[string]*entry), wake: make(chan struct{}, 1), queued: make(map[string]struct{})}
	m.writing.Lock()
	defer m.writing.Unlock()
	m.consumers[c] = struct{}{}
	for _, e := range m.view.ordered {
		c.enqueue(e.ID)
	}
	return c
}

func (m *Mirror) unregister(c *consumer) {
	m.writing.Lock()
	defer m.writing.Unlock()
	delete(m.consumers, c)
}

// notify enqueues relayers for all consumers. The caller holds m.writing.
func (m *Mirror) notify(ids ...string) {
	for c := range m.consumers {
		c.enqueue(ids...)
	}
}

func (c *consumer) enqueue(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if _, isQueued := c.queued[id]; !isQueued {
			c.queued[id] = struct{}{}
			c.queue = append(c.queue, id)
		}
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next returns the next ID of the queue. The state of the relayer must be read after it: a
// later change enqueues the ID again.
func (c *consumer) next() (id string, isQueued bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return "", false
	}
	id = c.queue[0]
	c.queue = c.queue[1:]
	delete(c.queued, id)
	return id, true
}

// report reports the difference of a relayer, if any. It returns false if the consumer ends
// the sequence.
func (c *consumer) report(id string, after *entry, yield func(Change) bool) bool {
	before := c.reported[id]
	if after == nil {
		delete(c.reported, id)
	} else {
		c.reported[id] = after
	}
	switch {
	case before == nil && after == nil:
		return true
	case before == nil:
		return yield(Change{relayer.ChangeCreated, nil, after.Relayer})
	case after == nil:
		return yield(Change{relayer.ChangeDeleted, before.Relayer, nil})
	case before.life != after.life:
		return yield(Change{relayer.ChangeDeleted, before.Relayer, nil}) && yield(Change{relayer.ChangeCreated, nil, after.Relayer})
	case before.Relayer == after.Relayer:
		return true
	default:
		return yield(Change{relayer.ChangeUpdated, before.Relayer, after.Relayer})
	}
}
