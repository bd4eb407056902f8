package relayer_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// created returns the ids of count relayers that it makes, in order. The ids
// sort the other way round, so that an order by id shows.
func created(t testing.TB, m *relayer.Manager, count int) []string {
	t.Helper()
	ids := make([]string, count)
	for i := range ids {
		ids[i] = mustCreate(t, m, minimal(fmt.Sprintf("r%04d", count-i))).ID
	}
	return ids
}

func idsOf(relayers []*relayer.Relayer) []string {
	ids := []string{}
	for _, r := range relayers {
		ids = append(ids, r.ID)
	}
	return ids
}

// withoutDocuments hides what a store offers beside the five methods.
type withoutDocuments struct{ relayer.Store }

// TestPages goes through the paging of the contract, on both ways to read
// documents.
func TestPages(t *testing.T) {
	const most = math.MaxUint32
	tests := []struct {
		page, perPage uint32
		from, to      int // of the 25 relayers
		want          relayer.Pagination
	}{
		{1, 10, 0, 10, relayer.Pagination{CurrentPage: 1, PerPage: 10, TotalItems: 25}},
		{0, 10, 0, 10, relayer.Pagination{CurrentPage: 1, PerPage: 10, TotalItems: 25}},
		{2, 10, 10, 20, relayer.Pagination{CurrentPage: 2, PerPage: 10, TotalItems: 25}},
		{3, 10, 20, 25, relayer.Pagination{CurrentPage: 3, PerPage: 10, TotalItems: 25}},
		{4, 10, 25, 25, relayer.Pagination{CurrentPage: 4, PerPage: 10, TotalItems: 25}},
		{25, 1, 24, 25, relayer.Pagination{CurrentPage: 25, PerPage: 1, TotalItems: 25}},
		{26, 1, 25, 25, relayer.Pagination{CurrentPage: 26, PerPage: 1, TotalItems: 25}},
		{1, 0, 0, 0, relayer.Pagination{CurrentPage: 1, PerPage: 0, TotalItems: 25}},
		{0, 0, 0, 0, relayer.Pagination{CurrentPage: 1, PerPage: 0, TotalItems: 25}},
		{7, 0, 0, 0, relayer.Pagination{CurrentPage: 7, PerPage: 0, TotalItems: 25}},
		{1, 100, 0, 25, relayer.Pagination{CurrentPage: 1, PerPage: 100, TotalItems: 25}},
		{1, 101, 0, 25, relayer.Pagination{CurrentPage: 1, PerPage: 100, TotalItems: 25}},
		{2, 101, 25, 25, relayer.Pagination{CurrentPage: 2, PerPage: 100, TotalItems: 25}},
		{1, most, 0, 25, relayer.Pagination{CurrentPage: 1, PerPage: 100, TotalItems: 25}},
		{most, 10, 25, 25, relayer.Pagination{CurrentPage: most, PerPage: 10, TotalItems: 25}},
		{most, most, 25, 25, relayer.Pagination{CurrentPage: most, PerPage: 100, TotalItems: 25}},
	}
	for name, store := range map[string]relayer.Store{"store with documents": memory.New(), "store without": withoutDocuments{memory.New()}} {
		m, err := relayer.New(store)
		if err != nil {
			t.Fatal(err)
		}
		ids := created(t, m, 25)
		for _, test := range tests {
			t.Run(fmt.Sprintf("%s, page %d of %d", name, test.page, test.perPage), func(t *testing.T) {
				wantPage(t, m, test.page, test.perPage, ids[test.from:test.to], test.want)
			})
		}
	}
}

// wantPage reads a page as relayers and as documents.
func wantPage(t *testing.T, m *relayer.Manager, page, perPage uint32, ids []string, want relayer.Pagination) {
	t.Helper()
	ctx := context.Background()
	listed, err := m.List(ctx, page, perPage)
	if err != nil {
		t.Fatal(err)
	}
	if got := idsOf(listed.Relayers); !slices.Equal(got, ids) || listed.Pagination != want {
		t.Errorf("List: %q, %+v, want %q, %+v", got, listed.Pagination, ids, want)
	}
	if listed.Relayers == nil {
		t.Error("List: nil for no relayers")
	}
	var documents []string
	for _, id := range ids {
		documents = append(documents, storedDocument(t, m, id))
	}
	got, pagination, err := m.AppendDocuments(ctx, []byte("["), page, perPage)
	if wanted := "[" + strings.Join(documents, ","); err != nil || string(got) != wanted || pagination != want {
		t.Errorf("AppendDocuments: %s, %+v, %v, want %s, %+v", got, pagination, err, wanted, want)
	}
}

// TestMaxPerPage: the most of a page is what the host says, and past the end of
// all numbers there still is no relayer.
func TestMaxPerPage(t *testing.T) {
	for _, test := range []struct{ most, asked, want uint32 }{
		{1, 10, 1}, {3, 3, 3}, {3, 4, 3}, {1000, 500, 500}, {math.MaxInt32, math.MaxUint32, math.MaxInt32},
	} {
		m := newManager(t, relayer.WithMaxPerPage(test.most))
		ids := created(t, m, 5)
		end := min(len(ids), int(test.want))
		wantPage(t, m, 1, test.asked, ids[:end], relayer.Pagination{CurrentPage: 1, PerPage: test.want, TotalItems: 5})
		wantPage(t, m, math.MaxUint32, test.asked, nil, relayer.Pagination{CurrentPage: math.MaxUint32, PerPage: test.want, TotalItems: 5})
	}
}

// TestEmptyRegistry: no relayers are no error.
func TestEmptyRegistry(t *testing.T) {
	m := newManager(t)
	wantPage(t, m, 1, 10, nil, relayer.Pagination{CurrentPage: 1, PerPage: 10})
	for r, err := range m.All(context.Background()) {
		t.Errorf("All: %v, %v", r, err)
	}
}

// TestPagesDoNotShift: a page already read stays as it is when relayers are
// added.
func TestPagesDoNotShift(t *testing.T) {
	m := newManager(t)
	ids := created(t, m, 4)
	for i := range 10 {
		wantPage(t, m, 2, 2, ids[2:4], relayer.Pagination{CurrentPage: 2, PerPage: 2, TotalItems: 4 + i})
		mustCreate(t, m, minimal(""))
	}
}

func TestMaxPerPageOutOfRange(t *testing.T) {
	for _, most := range []uint32{0, math.MaxInt32 + 1, math.MaxUint32} {
		if _, err := relayer.New(memory.New(), relayer.WithMaxPerPage(most)); err == nil {
			t.Errorf("%d is no error", most)
		}
	}
}
