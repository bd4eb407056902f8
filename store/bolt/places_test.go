package bolt_test

import (
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestGetThroughChanges asks for every record again and again while most of
// them go, come back elsewhere and change: more than are remembered at first.
func TestGetThroughChanges(t *testing.T) {
	store, _ := opened(t)
	const n = 3000
	for round := range 3 {
		createAll(t, store, 0, n)
		recs, total, err := store.List(t.Context(), 0, n)
		if err != nil || total != n {
			t.Fatalf("round %d: total %d, error %v", round, total, err)
		}
		wantGets(t, store, recs)
		wantGets(t, store, recs)
		deleteAll(t, store, recs)
		for _, rec := range recs {
			if _, err := store.Get(t.Context(), rec.ID); !errors.Is(err, relayer.ErrNotFound) {
				t.Fatalf("round %d: Get of the deleted %s: error %v", round, rec.ID, err)
			}
		}
	}
	wantSound(t, store)
}

func wantGets(t *testing.T, store relayer.Store, recs []relayer.Record) {
	t.Helper()
	for _, want := range recs {
		got, err := store.Get(t.Context(), want.ID)
		if err != nil || got.ID != want.ID || got.Revision != want.Revision {
			t.Fatalf("%s at %d, want %s at %d; error %v", got.ID, got.Revision, want.ID, want.Revision, err)
		}
	}
}
