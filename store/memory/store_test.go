package memory_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) relayer.Store { return memory.New() })
}

// callingContext calls a function at its second check, which is in the middle of a search.
type callingContext struct {
	context.Context
	checks int
	call   func()
}

func (c *callingContext) Err() error {
	if c.checks++; c.checks == 2 {
		c.call()
	}
	return c.Context.Err()
}

// A search holds up no write, returns the records of one moment, and ends with its context.
func TestList_SearchInTheMiddle(t *testing.T) {
	store := memory.New()
	const total = 5000
	var first relayer.Record
	for i := range total {
		rec, err := store.Create(t.Context(), relayer.Record{ID: fmt.Sprint(i), Text: "text", Terms: []string{"a", "b"}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = rec
		}
	}
	for name, query := range map[string]relayer.StoreQuery{
		"all":              {Contains: []string{"text"}, Limit: 1},
		"of a term":        {Contains: []string{"text"}, Terms: [][]string{{"a"}}, Limit: 1},
		"of several terms": {Terms: [][]string{{"a"}, {"b"}}, Limit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			ctx := &callingContext{Context: t.Context(), call: func() {
				first.Text = "other"
				if first, err = store.Update(t.Context(), first); err != nil {
					t.Error(err)
				}
			}}
			before := first
			found, listErr := store.List(ctx, query)
			if listErr != nil || found.Total != total || found.Records[0].Revision != before.Revision || first.Revision == before.Revision {
				t.Errorf("%d records, the first of revision %d, error %v; want %d, %d", found.Total, found.Records[0].Revision, listErr, total, before.Revision)
			}
			canceled, cancel := context.WithCancel(t.Context())
			ending := &callingContext{Context: canceled, call: cancel}
			if found, err := store.List(ending, query); !errors.Is(err, context.Canceled) || len(found.Records) > 0 {
				t.Errorf("%d records, error %v, want %v", len(found.Records), err, context.Canceled)
			}
			first.Text = "text"
			if first, err = store.Update(t.Context(), first); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDelete_LongNote(t *testing.T) {
	store := memory.New()
	rec, err := store.Create(t.Context(), relayer.Record{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	err = store.Delete(t.Context(), rec.ID, rec.Revision, make([]byte, 16385))
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
	if all, err := store.List(t.Context(), relayer.StoreQuery{Limit: count}); len(all.Records) != count || err != nil {
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
