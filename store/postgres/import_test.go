//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
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

// TestImport_SharedBatch has an import share its batch with other writes. Later writes
// get greater revisions than the imported ones.
func TestImport_SharedBatch(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	changes := watch(t, store)
	release := holdWriteLock(t, admin, schema)
	first := inBackground(func() error { return errorOf(store.Create(t.Context(), record("first"))) })
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
		queue(func() error { return errorOf(store.Create(context.Background(), record("before"))) }),
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
