package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
)

// listPositions lists different pages between writes, and watches from each position, at
// once and at the end. The position is that of the snapshot, and does not depend on the page.
func listPositions(t *testing.T, store relayer.Store) {
	random := newRandom(t)
	feed := watch(t, store)
	type listed struct {
		query    relayer.StoreQuery
		position string
		atOnce   watcher
	}
	lists := make([][]listed, 1) // by the number of changes before
	list := func() {
		at := len(lists) - 1
		for _, query := range []relayer.StoreQuery{
			{}, {Limit: 2}, {Offset: 100, Limit: 10}, {After: 1 << 50, Limit: 10}, {Limit: 10, DocumentsOnly: true},
			{Terms: [][]string{{"common"}}, Limit: 10}, {Terms: [][]string{{"none"}}, Limit: 10}, {IDs: []string{numbered(1)}, Limit: 10},
			{Contains: []string{"text"}, Limit: 1}, {Contains: []string{"nothing"}},
		} {
			page, err := store.List(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			wantPositionForm(t, page.Position)
			lists[at] = append(lists[at], listed{query, page.Position, watchAfter(t, store, page.Position)})
		}
	}
	for i := range 8 {
		list()
		if err := writeAny(t.Context(), store, numbered(random.IntN(3)), i); err != nil {
			t.Fatal(err)
		}
		lists = append(lists, nil)
	}
	list()
	changes := feed.readUntil(t, mustCreate(t, store, sample("last")))
	for before, made := range lists {
		for _, l := range made {
			for _, w := range []watcher{l.atOnce, watchAfter(t, store, l.position)} {
				for i, want := range changes[before:] {
					got, err, ok := w.next()
					if err != nil || !ok {
						t.Fatalf("Watch from the list %+v, change %d: error %v, ended is %t", l.query, before+i, err, !ok)
					}
					wantSameChange(t, got, want)
				}
			}
		}
	}
}

func wantPositionForm(t *testing.T, position string) {
	t.Helper()
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	if position == "" || len(position) > limits.Position || strings.ContainsFunc(position, isOther) {
		t.Fatalf("the position is %q", position)
	}
}

// listThenWatch lists and then follows the changes from the position of the list, again and
// again, during the writes of many: no change is missing, and none is in the list too.
func listThenWatch(t *testing.T, store relayer.Store) {
	const writers, ids, fewest, most, lists = 16, 6, 10, 1500, 150
	var listed atomic.Int64
	end := sample("end")
	written := make(chan error, 1)
	go func() {
		errs := race(writers, func(writer int) error {
			for i := 0; i < fewest || i < most && listed.Load() < lists; i++ {
				if err := writeAny(t.Context(), store, numbered((writer+i)%ids), i); err != nil {
					return err
				}
			}
			return nil
		})
		_, err := store.Create(t.Context(), end)
		written <- errors.Join(append(errs, err)...)
	}()
	views := selections()
	errs := race(len(views), func(i int) error {
		defer listed.Store(lists) // so that the writers end, also after an error
		for {
			changes := rand.IntN(40)
			if listed.Add(1) > lists {
				changes = math.MaxInt
			}
			if isEnd, err := views[i].follow(t.Context(), store, end.ID, changes); isEnd || err != nil {
				return err
			}
		}
	})
	if err := errors.Join(append(errs, <-written)...); err != nil {
		t.Fatal(err)
	}
}

// follow reads a list and applies a number of changes, or those up to the create of the last
// record. It then compares the view with the store, and reports that it is at the end. A gap
// is not an error, unless there is no writer.
func (v *view) follow(ctx context.Context, store relayer.Store, last string, changes int) (isEnd bool, err error) {
	position, err := v.read(ctx, store)
	if err != nil {
		return false, err
	}
	if _, err := store.Get(ctx, last); err == nil {
		return true, nil // the list may have it, so that no change comes
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(patience, cancel)
	defer timer.Stop()
	for change, err := range store.Watch(ctx, position) {
		switch {
		case errors.Is(err, relayer.ErrGap):
			return false, nil
		case err != nil:
			return false, err
		case change.Kind == relayer.ChangeHeartbeat:
			continue
		}
		timer.Reset(patience)
		if err := v.apply(change); err != nil {
			return false, err
		}
		if change.Record.ID == last {
			return true, v.check(ctx, store)
		}
		if changes--; changes <= 0 {
			return false, nil
		}
	}
	return false, fmt.Errorf("%+v: no change within %s", v.query, patience)
}
