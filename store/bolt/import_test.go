package bolt_test

import (
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

func importAll(t *testing.T, store *bolt.Store, records []relayer.Record) func() error {
	return func() error { return store.Import(t.Context(), records) }
}

// numberedRecords returns records to import. Each has a claim.
func numberedRecords(prefix string, n, size int) []relayer.Record {
	records := make([]relayer.Record, n)
	for i := range records {
		id := fmt.Sprintf("%s-%d", prefix, i)
		records[i] = relayer.Record{ID: id, Revision: uint64(n - i), Claim: "claim of " + id, Document: make([]byte, size)}
	}
	return records
}

func TestImport_OneCommit(t *testing.T) {
	store, path := openTemp(t)
	commits := countCommits(store)
	records := numberedRecords("m", 2500, 1000)
	must(t, importAll(t, store, records)())
	if commits.Load() != 1 {
		t.Errorf("an import took %d commits", commits.Load())
	}
	var ids []string
	for _, rec := range records {
		ids = append(ids, rec.ID)
	}
	wantRecovered(t, store, path, ids...)
}

// An empty import and a rejected one do not commit.
func TestImport_NothingToCommit(t *testing.T) {
	store, _ := openTemp(t)
	store.InterceptCommits(func(func() error) error {
		t.Error("a commit without changes")
		return errDisk
	})
	must(t, importAll(t, store, nil)())
	twice := append(numberedRecords("m", 3, 10), numberedRecords("m", 1, 10)...)
	wantError(t, importAll(t, store, twice)(), relayer.ErrExists)
	wantSound(t, store)
}

// Imports share a commit with other writes. A rejected import does not affect the writes
// after it.
func TestImport_InBatch(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "stored", Claim: "held"})
	taken, claimed := numberedRecords("m", 5, 10), numberedRecords("m", 5, 10)
	taken[3].ID, claimed[4].Claim = "stored", "held"
	results := enqueue(t, store,
		create(t, store, relayer.Record{ID: "a"}),
		importAll(t, store, taken),
		importAll(t, store, claimed),
		create(t, store, relayer.Record{ID: "m-1", Claim: "claim of m-2"}),
		importAll(t, store, numberedRecords("m", 5, 10)),
		func() error { return store.Delete(t.Context(), "m-1", 3, nil) },
		importAll(t, store, numberedRecords("m", 3, 10)),
		create(t, store, relayer.Record{ID: "m-1"}),
		create(t, store, relayer.Record{ID: "b", Claim: "claim of m-0"}),
	)
	g.release(t)
	wantResults(t, results, nil, relayer.ErrExists, relayer.ErrClaimed, nil, relayer.ErrExists, nil, nil, relayer.ErrExists, relayer.ErrClaimed)
	if commits := g.commits.Load(); commits != 2 {
		t.Errorf("%d commits, want 2", commits)
	}
	wantIDs(t, store, []string{"stored", "a", "m-0", "m-1", "m-2"})
	wantSound(t, store)
}

// Writes and imports count with all their bytes for the limit of a batch.
func TestImport_LargeBatch(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "first"})
	results := enqueue(t, store,
		create(t, store, relayer.Record{ID: "second"}),
		importAll(t, store, numberedRecords("a", 9, 1<<20)),
		create(t, store, relayer.Record{ID: "third"}),
		importAll(t, store, numberedRecords("b", 5, 1<<20)),
		create(t, store, relayer.Record{ID: "large", Document: make([]byte, 5<<20)}),
	)
	g.release(t, results...)
	if commits := g.commits.Load(); commits != 5 {
		t.Errorf("the writes after the first took %d commits, want 4", commits-1)
	}
	wantSound(t, store)
}
