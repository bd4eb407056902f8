package relayer_test

import (
	"context"
	"slices"
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
	var page relayer.DocumentPage
	view := m.Within(mustParse(t, "network=sepolia|mainnet,paused=false"))
	for name, c := range map[string]struct {
		most float64
		read func() error
	}{
		"get":            {0, func() error { return second(m.Documents().Get(ctx, listing.Records[0].ID)) }},
		"get in a view":  {0, func() error { return second(view.Documents().Get(ctx, listing.Records[0].ID)) }},
		"list":           {3, func() error { return second(listDocuments(ctx, m, relayer.ListQuery{PerPage: 100})) }},
		"list again":     {0, func() error { return m.Documents().List(ctx, relayer.ListQuery{PerPage: 100}, &page) }},
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

// TestDocuments_List: a page is read again into its memory, and never into that of a store
// that has ignored the hint.
func TestDocuments_List(t *testing.T) {
	store := memory.New()
	created(t, managerOf(t, store), 30)
	listing, err := store.List(t.Context(), relayer.StoreQuery{Limit: 30})
	if err != nil {
		t.Fatal(err)
	}
	var page relayer.DocumentPage
	for _, s := range []relayer.Store{store, fixedStore{store, listing}, store} {
		documents := managerOf(t, s).Documents()
		for _, query := range []relayer.ListQuery{{PerPage: 30}, {PerPage: 30}, {PerPage: 30, After: new(relayer.Cursor)}, {PerPage: 30}} {
			want, err := listDocuments(t.Context(), managerOf(t, s), query)
			if err != nil {
				t.Fatal(err)
			}
			if err := documents.List(t.Context(), query, &page); err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(page.Documents, want.Documents, func(a, b relayer.Document) bool { return a.ID == b.ID && string(a.JSON) == string(b.JSON) }) ||
				len(page.Documents) != 30 || page.Next != want.Next || page.Pagination != want.Pagination {
				t.Errorf("the page is %+v, want %+v", page, want)
			}
		}
	}
	for _, rec := range listing.Records {
		if rec.ID == "" {
			t.Fatal("a record of the store was cleared")
		}
	}
}
