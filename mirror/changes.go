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

// Changes returns the relayers of the view as created, and then their changes, until ctx is done
// or the view is closed. So the changes, applied to an empty map, give the view. A relayer that
// ceases to match the selector of the view is reported as deleted.
//
// The changes of one relayer are in order. No writer waits for a consumer: the transitions of one
// relayer are combined until the consumer takes them, even if it was deleted and created again.
// Each consumer that is behind holds the IDs of changed relayers in memory. After the mirror has
// read all relayers again, all differences are queued, deletions first, even if only the revision
// differs. In a registry that was restored, a relayer can have a lower revision than before.
// Every range over the sequence begins again with the relayers of the view.
func (m *Mirror) Changes(ctx context.Context) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		c := m.register()
		defer m.unregister(c)
		for ctx.Err() == nil {
			if id, isQueued := c.next(); isQueued {
				if !c.report(id, m.find(id), yield) {
					return
				}
				continue
			}
			select {
			case <-c.wake:
			case <-ctx.Done():
			case <-m.done:
				return
			}
		}
	}
}

// consumer is one range over Changes.
type consumer struct {
	reported map[string]*relayer.Relayer
	wake     chan struct{}

	mu     sync.Mutex
	queue  []string // IDs of relayers that may differ from what was reported
	queued map[string]struct{}
}

// register enqueues all relayers for a new consumer, and from then on those that change: one
// that does both at once is reported once.
func (m *Mirror) register() *consumer {
	c := &consumer{reported: make(map[string]*relayer.Relayer), wake: make(chan struct{}, 1), queued: make(map[string]struct{})}
	m.consuming.Lock()
	m.consumers[c] = struct{}{}
	m.consuming.Unlock()
	for _, r := range m.selected(relayer.Selector{}) {
		c.enqueue(r.ID)
	}
	return c
}

func (m *Mirror) unregister(c *consumer) {
	m.consuming.Lock()
	defer m.consuming.Unlock()
	delete(m.consumers, c)
}

// notify enqueues relayers for all consumers.
func (m *Mirror) notify(ids ...string) {
	m.consuming.Lock()
	defer m.consuming.Unlock()
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
func (c *consumer) report(id string, current *relayer.Relayer, yield func(Change) bool) bool {
	change := Change{Kind: relayer.ChangeUpdated, Before: c.reported[id], After: current}
	if change.Before == change.After {
		return true
	}
	c.reported[id] = change.After
	switch {
	case change.Before == nil:
		change.Kind = relayer.ChangeCreated
	case change.After == nil:
		change.Kind = relayer.ChangeDeleted
		delete(c.reported, id)
	}
	return yield(change)
}
