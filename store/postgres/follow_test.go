//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestWatch_CopyOfAllRelayers has followers start during the writes of two instances.
// Each keeps a copy of all relayers by the rule of [relayer.Manager.Watch]. In the end
// the copies match the registry.
func TestWatch_CopyOfAllRelayers(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	var managers [2]*relayer.Manager
	for i := range managers {
		manager, err := relayer.New(open(t, schema))
		if err != nil {
			t.Fatal(err)
		}
		managers[i] = manager
	}
	for round := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		var writing, following sync.WaitGroup
		copies := make([]map[string]*relayer.Relayer, 4)
		for i := range copies {
			following.Go(func() {
				time.Sleep(rand.N(30 * time.Millisecond))
				copied, err := followUntil(ctx, managers[i%2], fmt.Sprintf("end-%d", round))
				if err != nil {
					t.Errorf("round %d, follower %d: %v", round, i, err)
				}
				copies[i] = copied
			})
		}
		for _, manager := range managers {
			writing.Go(func() {
				for range 20 {
					if err := writeAtRandom(ctx, manager); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				}
			})
		}
		writing.Wait()
		// For followers that begin late.
		time.Sleep(30 * time.Millisecond)
		if _, err := managers[0].Create(ctx, requestFor(fmt.Sprintf("end-%d", round))); err != nil {
			t.Fatal(err)
		}
		following.Wait()
		for i, copied := range copies {
			wantCopy(t, fmt.Sprintf("round %d, follower %d", round, i), managers[1], copied)
		}
		cancel()
		if t.Failed() {
			return
		}
	}
}

func requestFor(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
}

// writeAtRandom creates, changes or deletes one of a few relayers. Another instance may
// be faster.
func writeAtRandom(ctx context.Context, manager *relayer.Manager) error {
	id := fmt.Sprintf("r%d", rand.N(6))
	var err error
	switch rand.N(4) {
	case 0, 1:
		_, err = manager.Create(ctx, requestFor(id))
	case 2:
		_, err = manager.Update(ctx, id, func(r *relayer.Relayer) error {
			r.Name = fmt.Sprint(rand.N(1_000_000))
			return nil
		})
	case 3:
		err = manager.Delete(ctx, id)
	}
	if errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrNotFound) || errors.Is(err, relayer.ErrConflict) {
		return nil
	}
	return err
}

// followUntil keeps a copy of all relayers until the last one exists.
func followUntil(ctx context.Context, manager *relayer.Manager, last string) (map[string]*relayer.Relayer, error) {
	changes := manager.Watch(ctx, relayer.WatchQuery{})
	copied := make(map[string]*relayer.Relayer)
	for r, err := range manager.All(ctx, relayer.Selector{}) {
		if err != nil {
			return nil, err
		}
		copied[r.ID] = r
	}
	if copied[last] != nil {
		return copied, nil
	}
	for change, err := range changes {
		if err != nil {
			return nil, err
		}
		r := change.Relayer
		switch held := copied[r.ID]; {
		case change.Kind == relayer.ChangeDeleted:
			delete(copied, r.ID)
		case held == nil || held.Revision < r.Revision:
			copied[r.ID] = r
		}
		if r.ID == last {
			return copied, nil
		}
	}
	return nil, errors.New("the changes have ended")
}

func wantCopy(t *testing.T, whose string, manager *relayer.Manager, copied map[string]*relayer.Relayer) {
	t.Helper()
	count := 0
	for r, err := range manager.All(t.Context(), relayer.Selector{}) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		if held := copied[r.ID]; held == nil || held.Revision != r.Revision || held.Name != r.Name {
			t.Errorf("%s: copied %+v, stored %+v", whose, held, r)
		}
	}
	if count != len(copied) {
		t.Errorf("%s: copied %d relayers, stored %d", whose, len(copied), count)
	}
}

// TestWatch_CompleteHistory has many writers on two instances whose listeners are
// disconnected again and again. Each watcher receives every change once, in the order
// of the revisions, and the changes lead to the stored records.
func TestWatch_CompleteHistory(t *testing.T) {
	t.Parallel()
	p := newPair(t, both(server.ConnString()))
	admin := newPool(t, server.ConnString())
	var writing sync.WaitGroup
	for writer := range 8 {
		store := p.stores[writer%2]
		writing.Go(func() {
			for i := range 40 {
				rec, err := store.Create(t.Context(), record(fmt.Sprintf("w%d-%d", writer, i)))
				if err == nil && i%2 == 0 {
					rec, err = store.Update(t.Context(), rec)
				}
				if err == nil && i%3 == 0 {
					err = store.Delete(t.Context(), rec.ID, rec.Revision, nil)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	disturbed := make(chan struct{})
	go func() {
		defer close(disturbed)
		for range 10 {
			time.Sleep(20 * time.Millisecond)
			_, _ = admin.Exec(context.Background(), endListeners, p.schema)
		}
	}()
	writing.Wait()
	<-disturbed
	create(t, p.stores[0], record("end"))
	histories := [2][]received{history(t, p.changes[0]), history(t, p.changes[1])}
	if len(histories[0]) != 8*(40+20+14)+1 || len(histories[1]) != len(histories[0]) {
		t.Fatalf("received %d and %d changes, want %d", len(histories[0]), len(histories[1]), 8*(40+20+14)+1)
	}
	current := make(map[string]relayer.Record)
	for i, change := range histories[0] {
		other := histories[1][i]
		if change.Kind != other.Kind || !sameChange(change.Record, other.Record) {
			t.Fatalf("change %d: one is received %v, the other of %v", i, change, other)
		}
		before, isThere := current[change.Record.ID]
		switch {
		case change.Kind == relayer.ChangeCreated && !isThere, change.Kind == relayer.ChangeUpdated && isThere && before.Revision < change.Record.Revision:
			current[change.Record.ID] = change.Record
		case change.Kind == relayer.ChangeDeleted && isThere && before.Revision < change.Record.Revision:
			delete(current, change.Record.ID)
		default:
			t.Fatalf("change %d: %v on %v", i, change, before)
		}
	}
	wantAll(t, p.stores[1], current)
}

func history(t *testing.T, f *follower) []received {
	t.Helper()
	var all []received
	for {
		next := f.next(t)
		if next.err != nil {
			t.Fatal(next.err)
		}
		all = append(all, next)
		if next.Record.ID == "end" {
			return all
		}
	}
}

func wantAll(t *testing.T, store *postgres.Store, want map[string]relayer.Record) {
	t.Helper()
	recs, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: len(want) + 1})
	if err != nil || total != len(want) || len(recs) != len(want) {
		t.Fatalf("%d of %d relayers, error %v, want %d", len(recs), total, err, len(want))
	}
	for _, rec := range recs {
		if !sameChange(rec, want[rec.ID]) {
			t.Errorf("stored %v, want %v", rec, want[rec.ID])
		}
	}
}
