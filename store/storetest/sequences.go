package storetest

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
)

// wantGrowing returns a function that fails unless the sequences of its records grow.
func wantGrowing(t *testing.T) func(recs ...relayer.Record) {
	last := uint64(0)
	return func(recs ...relayer.Record) {
		t.Helper()
		for _, rec := range recs {
			if rec.Sequence <= last {
				t.Fatalf("%q has the sequence %d after %d", rec.ID, rec.Sequence, last)
			}
			last = rec.Sequence
		}
	}
}

func sequencesGrow(t *testing.T, store relayer.Store) {
	grew := wantGrowing(t)
	all := createMany(t, store, 4)
	grew(all...)
	all[1].Document = []byte(`{"changed":true}`)
	all[1] = mustUpdate(t, store, all[1])
	grew(mustCreate(t, store, sample("new")))
	wantSame(t, "Get", mustGet(t, store, all[1].ID), all[1])
}

// sequencesNeverReused deletes the records with the greatest sequences, and then all.
func sequencesNeverReused(t *testing.T, store relayer.Store) {
	grew := wantGrowing(t)
	all := createMany(t, store, 3)
	grew(all...)
	mustDelete(t, store, all[2])
	grew(mustCreate(t, store, all[2]))
	left, _ := mustList(t, store, 0, 10)
	for _, rec := range left {
		mustDelete(t, store, rec)
	}
	grew(createMany(t, store, 3)...)
}

func givenSequenceIgnored(t *testing.T, store relayer.Store) {
	rec := sample("one")
	rec.Sequence = 1 << 40
	made := mustCreate(t, store, rec)
	if made.Sequence == rec.Sequence {
		t.Fatalf("Create: the sequence is %d, the one given", made.Sequence)
	}
	change := made
	change.Sequence = 1 << 41
	changed, err := store.Update(t.Context(), change)
	if err != nil || changed.Sequence != made.Sequence {
		t.Fatalf("Update: the sequence went from %d to %d, error %v", made.Sequence, changed.Sequence, err)
	}
	wantPage(t, store, 0, 10, []relayer.Record{changed})
}

func sequencesOfImports(t *testing.T, store relayer.Store) {
	importing(t, store)
	grew := wantGrowing(t)
	grew(createMany(t, store, 3)...)
	for round := range 3 {
		records := moved(fmt.Sprint("m", round), 5)
		for i := range records {
			records[i].Sequence = uint64(i + 1) // that of another store
		}
		mustImport(t, store, records)
		grew(records...)
		wantSame(t, "Update of an imported record", mustUpdate(t, store, records[0]), mustGet(t, store, records[0].ID))
		mustDelete(t, store, records[4])
		grew(mustCreate(t, store, records[4]))
	}
}

func sequencesAfterReopening(t *testing.T, open opener) {
	grew := wantGrowing(t)
	for round := range 4 {
		store := open(t)
		kept, last := mustCreate(t, store, sample(numbered(round))), mustCreate(t, store, sample("last"))
		grew(kept, last)
		kept = mustUpdate(t, store, kept)
		mustDelete(t, store, last)
		closeStore(t, store)
		store = open(t)
		wantSame(t, "Get", mustGet(t, store, kept.ID), kept)
		closeStore(t, store)
	}
}

// listAfter begins pages behind each sequence, also behind those of deleted records and of
// none.
func listAfter(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 12)
	places := []uint64{0, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64}
	for _, rec := range all {
		places = append(places, rec.Sequence-1, rec.Sequence, rec.Sequence+1)
	}
	var left []relayer.Record
	for i, rec := range all {
		switch i {
		case 3, 4, 11:
			mustDelete(t, store, rec)
			continue
		case 6:
			rec = mustUpdate(t, store, rec)
		}
		left = append(left, rec)
	}
	for _, after := range places {
		for _, offset := range []int{0, 2, math.MaxInt} {
			for _, limit := range []int{0, 2, 100} {
				wantSelected(t, store, relayer.StoreQuery{After: after, Offset: offset, Limit: limit}, left)
			}
		}
		wantSelected(t, store, relayer.StoreQuery{After: after, Limit: 3, Terms: [][]string{{"id=id-0002", "id=id-0006", "common"}}}, left)
		wantSelected(t, store, relayer.StoreQuery{After: after, Limit: 3, Terms: [][]string{{"id=id-0002", "id=id-0006"}}}, left)
		wantSelected(t, store, relayer.StoreQuery{After: after, Limit: 3, IDs: []string{numbered(7), numbered(1), numbered(3)}}, left)
		wantSelected(t, store, relayer.StoreQuery{After: after, Limit: 3, Contains: []string{"5", "id-0000", "8"}}, left)
	}
}

// walkDuringWrites walks all records by After. Others are deleted between the pages, and
// created and deleted all the time.
func walkDuringWrites(t *testing.T, store relayer.Store) {
	random := newRandom(t)
	var passing atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		made, err := store.Create(t.Context(), sample(fmt.Sprint("passing-", passing.Add(1))))
		if err != nil {
			return err
		}
		return store.Delete(t.Context(), made.ID, made.Revision, nil)
	})
	defer stop()
	var staying, leaving []relayer.Record
	for _, limit := range []int{1, 3, 10} {
		for i := range 45 {
			rec := mustCreate(t, store, sample(fmt.Sprintf("%d-%d", limit, i)))
			if random.IntN(3) == 0 {
				staying = append(staying, rec)
			} else {
				leaving = append(leaving, rec)
			}
		}
		walk(t, store, limit, staying, func() {
			if len(leaving) > 0 {
				i := random.IntN(len(leaving))
				mustDelete(t, store, leaving[i])
				leaving = slices.Delete(leaving, i, i+1)
			}
		})
	}
}

// walk fails unless a walk returns each of the staying records once, in their order.
func walk(t *testing.T, store relayer.Store, limit int, staying []relayer.Record, between func()) {
	t.Helper()
	isStaying := make(map[string]bool)
	for _, rec := range staying {
		isStaying[rec.ID] = true
	}
	var found []relayer.Record
	for after := uint64(0); len(staying) > 0 && after < staying[len(staying)-1].Sequence; between() {
		page, err := store.List(t.Context(), relayer.StoreQuery{After: after, Limit: limit})
		if err != nil || len(page.Records) == 0 || len(page.Records) > limit {
			t.Fatalf("List after %d: %d records, error %v", after, len(page.Records), err)
		}
		for _, rec := range page.Records {
			if rec.Sequence <= after {
				t.Fatalf("a walk has the sequence %d after %d", rec.Sequence, after)
			}
			after = rec.Sequence
			if isStaying[rec.ID] {
				found = append(found, rec)
			}
		}
	}
	if len(found) != len(staying) {
		t.Fatalf("a walk with pages of %d returned %d of %d records", limit, len(found), len(staying))
	}
	for i, rec := range staying {
		wantSame(t, "walk", found[i], rec)
	}
}
