//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

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
