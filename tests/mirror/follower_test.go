//go:build unix

package mirror

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/mirror"
)

// follower applies the changes of a view to an empty map, and notes what cannot be right.
type follower struct {
	mu       sync.Mutex
	state    map[string]*relayer.Relayer
	last     map[string]uint64 // the highest revision by ID
	problems []string
}

func follow(t testing.TB, view *mirror.Mirror) *follower {
	f := &follower{state: make(map[string]*relayer.Relayer), last: make(map[string]uint64)}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for change := range view.Changes(ctx) {
			f.apply(change)
		}
	})
	t.Cleanup(func() {
		cancel()
		following.Wait()
		for _, problem := range f.problems {
			t.Error(problem)
		}
	})
	return f
}

func (f *follower) apply(c mirror.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := cmp.Or(c.After, c.Before).ID
	if f.state[id] != c.Before || kindOf(c) != c.Kind {
		f.problems = append(f.problems, fmt.Sprintf("after %v follows %+v", f.state[id], c))
	}
	if c.After == nil {
		delete(f.state, id)
		return
	}
	if c.After.Revision <= f.last[id] { // no registry of these tests is restored
		f.problems = append(f.problems, fmt.Sprintf("revision %d of %s follows %d", c.After.Revision, id, f.last[id]))
	}
	f.state[id], f.last[id] = c.After, c.After.Revision
}

func kindOf(c mirror.Change) relayer.ChangeKind {
	switch {
	case c.Before == nil:
		return relayer.ChangeCreated
	case c.After == nil:
		return relayer.ChangeDeleted
	default:
		return relayer.ChangeUpdated
	}
}

// has reports whether the changes have led to this revision of the relayer.
func (f *follower) has(r *relayer.Relayer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last[r.ID] == r.Revision
}

// difference returns how the map differs from the view, or "".
func (f *follower) difference(view *mirror.Mirror) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	inView := make(map[string]*relayer.Relayer)
	for r := range view.All(context.Background(), relayer.Selector{}) {
		inView[r.ID] = r
	}
	if !maps.Equal(inView, f.state) {
		return fmt.Sprintf("the changes lead to %v, and the view is %v", f.state, inView)
	}
	return ""
}
