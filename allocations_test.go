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
	listing relayer.Listing
}

func (s fixedStore) Get(context.Context, string) (relayer.Record, error) {
	return s.listing.Records[0], nil
}

func (s fixedStore) List(context.Context, relayer.StoreQuery) (relayer.Listing, error) {
	return s.listing, nil
}

// A get of a document allocates nothing. A list allocates its page, and a view also the query
// and the position.
func TestDocuments_Allocations(t *testing.T) {
	store := memory.New()
	created(t, managerOf(t, store), 100)
	listing, err := store.List(t.Context(), relayer.StoreQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	m := managerOf(t, fixedStore{store, listing})
	view := m.Within(mustParse(t, "network=sepolia|mainnet,paused=false"))
	for name, c := range map[string]struct {
		most float64
		read func() error
	}{
		"get":            {0, func() error { return second(m.Documents().Get(ctx, listing.Records[0].ID)) }},
		"get in a view":  {0, func() error { return second(view.Documents().Get(ctx, listing.Records[0].ID)) }},
		"list":           {3, func() error { return second(listDocuments(ctx, m, relayer.ListQuery{PerPage: 100})) }},
		"list in a view": {11, func() error { return second(listDocuments(ctx, view, relayer.ListQuery{PerPage: 100})) }},
	} {
		if err := c.read(); err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { _ = c.read() }); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, c.most)
		}
	}
}
