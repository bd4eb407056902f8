package memory_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) relayer.Store { return memory.New() })
}

// TestList_AfterRenumbering deletes so many records, one by one and in runs, that the
// slots are renumbered several times.
func TestList_AfterRenumbering(t *testing.T) {
	store := memory.New()
	random := rand.New(rand.NewPCG(3, 4))
	var ids []string
	revisions := make(map[string]uint64)
	for round := range 12 {
		for i := range 1500 {
			id := fmt.Sprintf("r%d-%d", round, i)
			rec, err := store.Create(t.Context(), relayer.Record{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
			revisions[id] = rec.Revision
		}
		for len(ids) > 100 {
			start := random.IntN(len(ids))
			end := min(len(ids), start+1+random.IntN(80))
			for _, id := range ids[start:end] {
				if err := store.Delete(t.Context(), id, revisions[id]); err != nil {
					t.Fatal(err)
				}
			}
			ids = append(ids[:start:start], ids[end:]...)
			offset := random.IntN(len(ids) + 1)
			wantIDs(t, store, offset, ids)
		}
	}
}

func wantIDs(t *testing.T, store relayer.Store, offset int, ids []string) {
	t.Helper()
	recs, total, err := store.List(t.Context(), offset, 20)
	if err != nil || total != len(ids) {
		t.Fatalf("total is %d, want %d; error %v", total, len(ids), err)
	}
	want := ids[offset:min(len(ids), offset+20)]
	if len(recs) != len(want) {
		t.Fatalf("%d records from %d on, want %d", len(recs), offset, len(want))
	}
	for i := range want {
		if recs[i].ID != want[i] {
			t.Fatalf("record %d is %q, want %q", offset+i, recs[i].ID, want[i])
		}
	}
}
