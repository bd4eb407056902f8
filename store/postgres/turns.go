package postgres

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
)

// turns limits how many callers wait in the pool for a connection, which serves them in the
// order of their arrival. The others wait here, and follow round-robin by actor, so that a
// caller with many requests does not delay those of others.
type turns struct {
	free int // turns that are not taken

	mu      sync.Mutex
	waiting []*turn // in the order of their arrival
	count   uint64
	last    map[string]uint64 // the number of the last turn of an actor, while somebody waits
}

type turn struct {
	actor string
	begun chan struct{}
}

// take waits for a turn, or until ctx is done. The caller ends the turn with leave.
func (t *turns) take(ctx context.Context) error {
	actor, _ := relayer.ActorFrom(ctx)
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	own := &turn{actor.ID, make(chan struct{})}
	t.waiting = append(t.waiting, own)
	t.mu.Unlock()
	select {
	case <-own.begun:
		return nil
	case <-ctx.Done():
	}
	if !t.remove(own) {
		t.leave() // the turn has begun
	}
	return ctx.Err()
}

// remove returns false if the turn has begun.
func (t *turns) remove(own *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, own)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return true
}

// leave ends a turn. The next one is that of the actor whose last turn is the longest ago.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.free++
		t.last = nil
		return
	}
	next := slices.MinFunc(t.waiting, func(a, b *turn) int { return cmp.Compare(t.last[a.actor], t.last[b.actor]) })
	i := slices.Index(t.waiting, next)
	t.waiting = slices.Delete(t.waiting, i, i+1)
	if t.last == nil {
		t.last = make(map[string]uint64)
	}
	t.count++
	t.last[next.actor] = t.count
	close(next.begun)
}
