package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) relayer.Store { return memory.New() })
}

// TestList_AfterDeletes deletes records one by one and in runs, between creates.
func TestList_AfterDeletes(t *testing.T) {
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
				if err := store.Delete(t.Context(), id, revisions[id], nil); err != nil {
					t.Fatal(err)
				}
			}
			ids = append(ids[:start:start], ids[end:]...)
			offset := random.IntN(len(ids) + 1)
			wantIDs(t, store, offset, ids)
		}
	}
}

func TestDelete_LongNote(t *testing.T) {
	store := memory.New()
	rec, err := store.Create(t.Context(), relayer.Record{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Delete(t.Context(), rec.ID, rec.Revision, make([]byte, 4097))
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); !ok || invalid.Fields[0].Field != "note" {
		t.Errorf("error %v, want one of the note", err)
	}
	if _, err := store.Get(t.Context(), rec.ID); err != nil {
		t.Error(err)
	}
}

func TestDelete_FreesMemory(t *testing.T) {
	const size, count = 256 << 10, 256 // 64 MiB, of which the feed may keep 16
	store := memory.New()
	before := heapInUse()
	for i := range count {
		if _, err := store.Create(t.Context(), relayer.Record{ID: fmt.Sprint(i), Document: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := store.List(t.Context(), page(0, count)); len(all.Records) != count || err != nil {
		t.Fatalf("the page has %d records, error %v", len(all.Records), err)
	}
	for i := range count {
		if i%32 == 0 {
			continue
		}
		rec, err := store.Get(t.Context(), fmt.Sprint(i))
		if err == nil {
			err = store.Delete(t.Context(), rec.ID, rec.Revision, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if kept := heapInUse() - before; kept > 32<<20 {
		t.Errorf("after the deletes %d MiB are in use", kept>>20)
	}
	runtime.KeepAlive(store)
}

func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func wantIDs(t *testing.T, store relayer.Store, offset int, ids []string) {
	t.Helper()
	found, err := store.List(t.Context(), page(offset, 20))
	if err != nil || found.Total != len(ids) {
		t.Fatalf("total is %d, want %d; error %v", found.Total, len(ids), err)
	}
	recs := found.Records
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

func page(offset, limit int) relayer.StoreQuery {
	return relayer.StoreQuery{Offset: offset, Limit: limit}
}
