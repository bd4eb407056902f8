//go:build unix

package postgres_test

import (
	"testing"

	"github.com/go-relayer/relayer"
)

// TestSelection_ChangesInBatch has one batch create, update and delete a record, so that
// terms come and go in one commit.
func TestSelection_ChangesInBatch(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	kept := create(t, store, record("kept"))
	release := holdWriteLock(t, admin, schema)
	ends := []<-chan error{inBackground(func() error { return errorOf(store.Create(t.Context(), record("first"))) })}
	awaitWaiting(t, admin, schema, 1)
	queue := func(do func() error) {
		ends = append(ends, inBackground(do))
		awaitQueued(t, store, len(ends)-1)
	}
	with := func(id string, revision uint64, terms ...string) relayer.Record {
		rec := record(id)
		rec.Revision, rec.Terms = revision, terms
		return rec
	}
	change := func(rec relayer.Record) func() error {
		return func() error { return errorOf(store.Update(t.Context(), rec)) }
	}
	// The revisions follow from the order.
	queue(func() error { return errorOf(store.Create(t.Context(), with("brief", 0, "a", "b"))) })
	queue(change(with("brief", 3, "b", "c")))
	queue(func() error { return store.Delete(t.Context(), "brief", 4, nil) })
	queue(change(with("kept", kept.Revision)))
	queue(change(with("kept", 6, "b", "common")))
	release()
	for i, end := range ends {
		if err := <-end; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	wantConsistent(t, store)
	for term, want := range map[string]int{"a": 0, "b": 1, "c": 0, "common": 2, "id=kept": 0} {
		if _, total, err := list(t.Context(), store, relayer.StoreQuery{Terms: [][]string{{term}}}); total != want || err != nil {
			t.Errorf("%d records with the term %s, error %v, want %d", total, term, err, want)
		}
	}
}
