package relayer_test

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// fixedStore returns the same records for every query, and allocates nothing.
type fixedStore struct {
	relayer.Store
	records []relayer.Record
}

func (s fixedStore) Get(context.Context, string) (relayer.Record, error) { return s.records[0], nil }

func (s fixedStore) List(context.Context, relayer.StoreQuery) ([]relayer.Record, int, error) {
	return s.records, len(s.records), nil
}

// A read of documents allocates nothing, and a view only the query of a list.
func TestDocuments_Allocations(t *testing.T) {
	store := memory.New()
	created(t, managerOf(t, store), 100)
	records, _, err := store.List(t.Context(), relayer.StoreQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	buffer := make([]relayer.Document, 0, 100)
	m := managerOf(t, fixedStore{store, records})
	view := m.Within(mustParse(t, "network=sepolia|mainnet,paused=false"))
	for name, c := range map[string]struct {
		most float64
		read func() error
	}{
		"get":            {0, func() error { return second(m.GetDocument(ctx, records[0].ID)) }},
		"get in a view":  {0, func() error { return second(view.GetDocument(ctx, records[0].ID)) }},
		"list":           {0, func() error { return third(m.AppendDocuments(ctx, buffer, relayer.ListQuery{PerPage: 100})) }},
		"list in a view": {2, func() error { return third(view.AppendDocuments(ctx, buffer, relayer.ListQuery{PerPage: 100})) }},
	} {
		if err := c.read(); err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { _ = c.read() }); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, c.most)
		}
	}
}
