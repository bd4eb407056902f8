//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/transfer"
)

// imported returns records whose revisions are not in their order.
func imported(prefix string, count int, greatest uint64) []relayer.Record {
	var all []relayer.Record
	for i := range count {
		rec := record(fmt.Sprintf("%s-%d", prefix, i))
		rec.Revision = greatest - uint64(i*7%count)
		all = append(all, rec)
	}
	return all
}

// TestImport_Concurrent runs imports that conflict, through two instances. One of them
// succeeds and the others import nothing.
func TestImport_Concurrent(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	stores := [2]*postgres.Store{open(t, schema), open(t, schema)}
	const racers = 6
	for round := range 8 {
		results := make([]error, racers)
		var racing sync.WaitGroup
		for racer := range racers {
			racing.Go(func() {
				// Each imports distinct records, and one that all have in common.
				mine := imported(fmt.Sprintf("round%d-racer%d", round, racer), 9, uint64(1000*(round+1)))
				mine[4].ID, mine[4].Claim = fmt.Sprintf("round%d", round), ""
				results[racer] = stores[racer%2].Import(t.Context(), mine)
			})
		}
		racing.Wait()
		winners := 0
		for racer, err := range results {
			switch {
			case err == nil:
				winners++
			case !errors.Is(err, relayer.ErrExists):
				t.Errorf("round %d, racer %d: %v, want ErrExists", round, racer, err)
			}
		}
		if winners != 1 {
			t.Errorf("round %d: %d winners", round, winners)
		}
		recs, total, err := list(t.Context(), stores[0], relayer.StoreQuery{Offset: 9 * round, Limit: 100})
		if err != nil || total != 9*(round+1) || len(recs) != 9 {
			t.Fatalf("round %d: %d of %d relayers, error %v", round, len(recs), total, err)
		}
		for i, rec := range recs {
			if i != 4 && !same(rec, imported(recs[0].ID[:len(recs[0].ID)-2], 9, uint64(1000*(round+1)))[i]) {
				t.Errorf("round %d: record %d is %v", round, i, rec)
			}
		}
	}
	wantConsistent(t, stores[0])
}

// TestImport_SharedBatch has an import share its batch with other writes. Later writes
// get greater revisions than the imported ones.
func TestImport_SharedBatch(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	changes := watch(t, store)
	release := holdWriteLock(t, admin, schema)
	first := inBackground(func() error { _, err := store.Create(t.Context(), record("first")); return err })
	awaitWaiting(t, admin, schema, 1)
	queued := 0
	queue := func(do func() error) <-chan error {
		done := inBackground(do)
		queued++
		awaitQueued(t, store, queued) // to keep the order
		return done
	}
	moved := imported("moved", 5, 5000)
	refused := append(imported("refused", 3, 9000), moved[0])
	var created, updated relayer.Record
	done := []<-chan error{
		first,
		queue(func() error { _, err := store.Create(context.Background(), record("before")); return err }),
		queue(func() error { return store.Import(context.Background(), moved) }),
		queue(func() error {
			if err := store.Import(context.Background(), refused); !errors.Is(err, relayer.ErrExists) {
				return fmt.Errorf("refused import: error %w, want ErrExists", err)
			}
			return nil
		}),
		queue(func() (err error) { created, err = store.Create(context.Background(), record("after")); return err }),
		queue(func() (err error) { updated, err = store.Update(context.Background(), moved[0]); return err }),
		queue(func() error { return store.Delete(context.Background(), moved[1].ID, moved[1].Revision, nil) }),
	}
	release()
	for i, done := range done {
		if err := <-done; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if created.Revision <= 5000 || created.Revision > 9000 || updated.Revision <= created.Revision {
		t.Errorf("revisions %d and %d after an import of 5000", created.Revision, updated.Revision)
	}
	recs, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: 10})
	if err != nil || total != 7 || recs[0].ID != "first" || recs[1].ID != "before" || recs[2].ID != moved[0].ID || recs[6].ID != "after" {
		t.Errorf("%d relayers, error %v: %v", total, err, recs)
	}
	// The changes before the import come before ErrGap.
	for {
		next := changes.next(t)
		if errors.Is(next.err, relayer.ErrGap) {
			break
		}
		if next.err != nil || next.Record.Revision > 5000 {
			t.Fatalf("received %v, error %v, before ErrGap", next.Record, next.err)
		}
	}
	// The changes of the batch follow.
	last := create(t, store, record("last"))
	for {
		if next := changes.next(t); next.err != nil {
			t.Fatal(next.err)
		} else if next.Record.ID == "last" {
			changes.stop()
			break
		}
	}
	if last.Revision <= updated.Revision {
		t.Errorf("revision %d after %d", last.Revision, updated.Revision)
	}
	wantConsistent(t, store)
}

// TestImport_MaxRevision: later writes get greater revisions.
func TestImport_MaxRevision(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	store, other := open(t, schema), open(t, schema)
	rec := record("one")
	rec.Revision = transfer.MaxRevision
	if err := store.Import(t.Context(), []relayer.Record{rec}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, other, "one"); !same(got, rec) {
		t.Errorf("got %v, want %v", got, rec)
	}
	changes := watch(t, store)
	for range 3 {
		next := update(t, other, rec)
		if next.Revision <= rec.Revision {
			t.Fatalf("revision %d after %d", next.Revision, rec.Revision)
		}
		changes.want(t, relayer.ChangeUpdated, next)
		rec = next
	}
	wantConsistent(t, store)
}
