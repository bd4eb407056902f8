package relayer_test

import (
	"cmp"
	"context"
	"fmt"
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

// TestWrite_Allocations bounds the work of a write, and that of changes by that of a create:
// a change decodes the stored relayer once, and a pause none of it. The limits hold with the
// race detector too, which adds up to a tenth.
func TestWrite_Allocations(t *testing.T) {
	m, ctx := managerOf(t, memory.New()), t.Context()
	mustCreate(t, m, typical("r"))
	reason := relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "nonce 7"}
	i := 0
	count := func(write func() error) float64 {
		return testing.AllocsPerRun(100, func() {
			i++
			if err := write(); err != nil {
				t.Error(err)
			}
		})
	}
	create := count(func() error { return second(m.Create(ctx, typical(fmt.Sprint("new-", i)))) })
	for name, c := range map[string]struct {
		most, share float64 // of a create
		write       func() error
	}{
		"patch": {190, 1.3, func() error {
			return second(m.Documents().Patch(ctx, "r", fmt.Appendf(nil, `{"policies":{"gas_price_cap":%d}}`, i)))
		}},
		"update": {225, 1.5, func() error {
			return second(m.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(i); return nil }))
		}},
		"pause and resume": {2 * 90, 2 * 0.65, func() error { return cmp.Or(second(m.Pause(ctx, "r")), second(m.Resume(ctx, "r"))) }},
		"pause and resume of a document": {2 * 45, 2 * 0.3, func() error {
			return cmp.Or(second(m.Documents().Patch(ctx, "r", []byte(`{"paused":true}`))), second(m.Documents().Patch(ctx, "r", []byte(`{"paused":false}`))))
		}},
		"disable and enable of a document": {2 * 60, 2 * 0.4, func() error {
			return cmp.Or(second(m.Documents().Disable(ctx, "r", reason)), second(m.Documents().Enable(ctx, "r")))
		}},
	} {
		if got := count(c.write); got > c.most || got > c.share*create {
			t.Errorf("%s: %v allocations, want at most %v and %v times the %v of a create", name, got, c.most, c.share, create)
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
