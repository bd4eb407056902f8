package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
)

// TestTurns_RoundRobin: the calls of an actor with many do not delay those of others, and
// follow each other in the order of their arrival.
func TestTurns_RoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := turns{free: 1}
		var order []string
		call := func(actor, name string) {
			ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: actor})
			go func() {
				if err := turns.take(ctx); err != nil {
					t.Error(err)
				}
				order = append(order, name)
			}()
			synctest.Wait()
		}
		for _, c := range [][2]string{{"a", "a1"}, {"a", "a2"}, {"a", "a3"}, {"a", "a4"}, {"b", "b1"}, {"b", "b2"}, {"c", "c1"}} {
			call(c[0], c[1])
		}
		for range 7 {
			turns.leave()
			synctest.Wait()
		}
		if want := []string{"a1", "a2", "b1", "c1", "a3", "b2", "a4"}; !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
		if turns.free != 1 || turns.last != nil {
			t.Errorf("afterwards %d turns are free", turns.free)
		}
	})
}

// TestTurns_ContextEnds: a call that ends while it waits has no turn, and takes none from
// others.
func TestTurns_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := turns{free: 1}
		if err := turns.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- turns.take(ctx) }()
		}
		synctest.Wait()
		turns.leave() // one of the two has the turn while its context ends
		cancel()
		failed := 0
		for range 2 {
			if err := <-ended; errors.Is(err, context.Canceled) {
				failed++
			} else {
				turns.leave()
			}
		}
		if failed == 0 || turns.free != 1 || len(turns.waiting) > 0 {
			t.Errorf("%d failed, and %d turns are free", failed, turns.free)
		}
	})
}
