package relayer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// created creates count relayers and returns their IDs in creation order, which is the
// reverse of the order by ID.
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

func TestList_Pages(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		managers := map[int]*relayer.Manager{100: managerOf(t, store)} // by the maximum
		for _, most := range []int{1, 3, 1000, math.MaxInt32} {
			managers[most] = managerOf(t, store, relayer.WithMaxPerPage(most))
		}
		ids := created(t, managers[100], 25)
		for most, m := range managers {
			for _, perPage := range []int{0, 1, 3, 10, 100, 101, math.MaxInt} {
				used := min(cmp.Or(perPage, 10), most)
				for _, page := range []int{0, 1, 2, 3, 4, 7, 25, 26, math.MaxInt} {
					current := max(page, 1)
					from := min(min(current-1, 25)*used, 25)
					wantPage(t, m, page, perPage, ids[from:min(from+used, 25)], relayer.Pagination{CurrentPage: current, PerPage: used, TotalItems: 25})
				}
			}
		}
	})
}

func TestList_InvalidQuery(t *testing.T) {
	m := newManager(t)
	for _, test := range []struct {
		query relayer.ListQuery
		want  []string
	}{
		{relayer.ListQuery{Page: -1}, []string{"page"}},
		{relayer.ListQuery{PerPage: -1}, []string{"per_page"}},
		{relayer.ListQuery{Page: math.MinInt, PerPage: math.MinInt}, []string{"page", "per_page"}},
		{relayer.ListQuery{After: new(relayer.Cursor("x"))}, []string{"after"}},
		{relayer.ListQuery{After: new(relayer.Cursor("-1"))}, []string{"after"}},
		{relayer.ListQuery{After: new(relayer.Cursor(" 1"))}, []string{"after"}},
		{relayer.ListQuery{After: new(relayer.Cursor("9223372036854775808"))}, []string{"after"}},
		{relayer.ListQuery{After: new(relayer.Cursor), Page: 1}, []string{"after"}},
	} {
		_, err := m.List(t.Context(), test.query)
		wantFields(t, fieldErrors(t, err), test.want...)
		_, err = m.Documents().List(t.Context(), test.query)
		wantFields(t, fieldErrors(t, err), test.want...)
	}
}

// wantPage compares a page of relayers and of documents.
func wantPage(t *testing.T, m *relayer.Manager, page, perPage int, ids []string, want relayer.Pagination) {
	t.Helper()
	query := relayer.ListQuery{Page: page, PerPage: perPage}
	listed := must(m.List(t.Context(), query))(t)
	if got := idsOf(listed.Relayers); !slices.Equal(got, ids) || listed.Pagination != want || listed.Relayers == nil {
		t.Errorf("List: %q, %+v, want %q, %+v", got, listed.Pagination, ids, want)
	}
	read := must(m.Documents().List(t.Context(), query))(t)
	if len(read.Documents) != len(ids) || read.Pagination != want {
		t.Fatalf("documents: %+v, want %+v", read, want)
	}
	for i, document := range read.Documents {
		if string(document.JSON) != storedDocument(t, m, ids[i]) {
			t.Errorf("document %d is %s", i, document.JSON)
		}
	}
}

// TestAll_Order covers numbers of relayers around the size of a batch.
func TestAll_Order(t *testing.T) {
	for _, count := range []int{1, 2, 99, 100, 101, 198, 199, 200, 201, 250} {
		m := newManager(t)
		ids := created(t, m, count)
		if got := idsOf(allOf(t, m, relayer.Selector{})); !slices.Equal(got, ids) {
			t.Errorf("%d relayers: All returned %q", count, got)
		}
	}
}

var errStore = fmt.Errorf("disk on fire: %w", relayer.ErrUnavailable)

// failingAfter is a store that fails all reads after the first ones.
func failingAfter(store relayer.Store, reads int) relayer.Store {
	return hooked{Store: store, before: func(context.Context, string, string) error {
		if reads--; reads < 0 {
			return errStore
		}
		return nil
	}}
}

// After a break neither the caller nor the store is called again.
func TestAll_Break(t *testing.T) {
	store := memory.New()
	created(t, managerOf(t, store), 150)
	for _, enough := range []int{1, 99, 100} {
		seen := 0
		for _, err := range managerOf(t, failingAfter(store, 1)).All(t.Context(), relayer.Selector{}) {
			mustSucceed(t, err)
			if seen++; seen == enough {
				break
			}
		}
		if seen != enough {
			t.Errorf("seen %d, want %d", seen, enough)
		}
	}
}

// TestAll_DuringDeletes deletes relayers before and after every point of the iteration.
func TestAll_DuringDeletes(t *testing.T) {
	for _, deleted := range []int{1, 50, 99, 100, 150, 350} {
		for _, at := range []int{1, 99, 100, 101, 199, 200} {
			t.Run(fmt.Sprintf("%d at %d", deleted, at), func(t *testing.T) {
				store := memory.New()
				m := managerOf(t, store)
				ids := created(t, m, 350)
				var got []string
				for r, err := range m.All(t.Context(), relayer.Selector{}) {
					mustSucceed(t, err)
					if got = append(got, r.ID); len(got) == at {
						for _, id := range ids[:deleted] {
							mustSucceed(t, m.Delete(t.Context(), id))
						}
					}
				}
				wantEachOnce(t, got, ids[max(deleted, at):])
			})
		}
	}
}

// wantEachOnce fails unless every ID of must was returned, and none twice.
func wantEachOnce(t *testing.T, got, must []string) {
	t.Helper()
	times := make(map[string]int)
	for _, id := range got {
		if times[id]++; times[id] == 2 {
			t.Errorf("%s is returned twice", id)
		}
	}
	for _, id := range must {
		if times[id] == 0 {
			t.Errorf("%s is not returned", id)
		}
	}
}

// Errors of the store are wrapped, and All yields the relayers before its error.
func TestManager_StoreErrors(t *testing.T) {
	ctx := t.Context()
	store := memory.New()
	ids := created(t, managerOf(t, store), 150)
	for reads, want := range []int{0, 100} {
		got := []string{}
		var failures []error
		for r, err := range managerOf(t, failingAfter(store, reads)).All(ctx, relayer.Selector{}) {
			if (r == nil) != (err != nil) {
				t.Errorf("relayer %v with error %v", r, err)
			}
			if err != nil {
				failures = append(failures, err)
				continue
			}
			got = append(got, r.ID)
		}
		if !slices.Equal(got, ids[:want]) || len(failures) != 1 || !errors.Is(failures[0], relayer.ErrUnavailable) {
			t.Errorf("read %d fails: %d relayers, errors %v", reads, len(got), failures)
		}
	}
	m := managerOf(t, failingAfter(store, 0))
	if page, err := m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10}); !errors.Is(err, errStore) || page != nil {
		t.Errorf("List: %v, %v", page, err)
	}
	if r, err := m.Get(ctx, ids[0]); !errors.Is(err, errStore) || r != nil {
		t.Errorf("Get: %v, %v", r, err)
	}
}

// A damaged record is an error that quotes nothing of its private part. A get masks damaged URLs.
func TestManager_DamagedRecords(t *testing.T) {
	ctx := t.Context()
	const document = `{"id":"a","network_type":"evm","custom_rpc_urls":[{"url":"https://a.example/***","weight":1}],"policies":{}}`
	for name, rec := range map[string]relayer.Record{
		"no document":        {ID: "a"},
		"no JSON":            {ID: "a", Document: []byte(`{`)},
		"no network type":    {ID: "a", Document: []byte(`{"id":"a","network_type":""}`)},
		"no private JSON":    {ID: "a", Document: []byte(document), Private: []byte(`{"https://a.example/SECRET`)},
		"private of another": {ID: "a", Document: []byte(document), Private: []byte(`{"custom_rpc_urls":[{"url":"https://a.example/SECRET","weight":100},{"url":"https://b.example/SECRET","weight":100}]}`)},
		"private of a kind":  {ID: "a", Document: []byte(document), Private: []byte(`{"custom_rpc_urls":"https://a.example/SECRET"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			m := managerOf(t, storeOf(t, rec))
			mustCreate(t, m, minimal("after"))
			r, err := m.Get(ctx, "a")
			isMasked := err == nil && r.CustomRPCURLs[0].URL == "https://a.example/***"
			if isMasked != (rec.Private != nil) || strings.Contains(fmt.Sprint(err), "SECRET") {
				t.Errorf("Get: %v, %v", r, err)
			}
			if page, err := m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10}); err == nil || page != nil {
				t.Errorf("List: %v, %v", page, err)
			}
			if ids, damaged := walk(t, m); !slices.Equal(ids, []string{"after"}) || !slices.Equal(damaged, []string{"a"}) {
				t.Errorf("All: relayers %q, damaged %q", ids, damaged)
			}
		})
	}
}

// walk returns what All yields: the IDs of relayers, and those of damaged records.
func walk(t *testing.T, m *relayer.Manager) (ids, damaged []string) {
	t.Helper()
	for r, err := range m.All(t.Context(), relayer.Selector{}) {
		corrupt, isDamaged := errors.AsType[*relayer.CorruptError](err)
		switch {
		case isDamaged && r == nil && !strings.Contains(err.Error(), "SECRET"):
			damaged = append(damaged, corrupt.ID)
		case err != nil:
			t.Fatal(r, err)
		default:
			ids = append(ids, r.ID)
		}
	}
	return ids, damaged
}

// oneDamaged is a store that cannot read the record with a sequence number.
type oneDamaged struct {
	relayer.Store
	sequence uint64
}

func (s oneDamaged) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	listing, err := s.Store.List(ctx, query)
	if i := slices.IndexFunc(listing.Records, func(rec relayer.Record) bool { return rec.Sequence == s.sequence }); i >= 0 {
		err = &relayer.CorruptError{ID: listing.Records[i].ID, Sequence: s.sequence, Err: relayer.ErrUnavailable}
		listing.Records = listing.Records[:i]
	}
	return listing, err
}

// A record that the store cannot read is the first or the last one of a batch, or of all.
func TestAll_DamagedRecord(t *testing.T) {
	store := memory.New()
	all := created(t, managerOf(t, store), 150)
	for _, offset := range []int{0, 99, 100, 149} {
		ids, damaged := walk(t, managerOf(t, oneDamaged{store, uint64(offset) + 1}))
		if want := slices.Delete(slices.Clone(all), offset, offset+1); !slices.Equal(ids, want) || !slices.Equal(damaged, all[offset:offset+1]) {
			t.Errorf("offset %d: relayers %q, damaged %q", offset, ids, damaged)
		}
	}
}

// contextIgnorer is a store whose reads ignore the context.
type contextIgnorer struct{ relayer.Store }

func (s contextIgnorer) List(_ context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return s.Store.List(context.Background(), query)
}

func TestAll_DoneContext(t *testing.T) {
	for name, store := range map[string]relayer.Store{"memory": memory.New(), "context ignored": contextIgnorer{memory.New()}} {
		t.Run(name, func(t *testing.T) {
			m := managerOf(t, store)
			created(t, m, 250)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			elements, last := 0, error(nil)
			for _, last = range m.All(ctx, relayer.Selector{}) {
				cancel()
				elements++
			}
			if !errors.Is(last, context.Canceled) || elements > 101 {
				t.Errorf("%d elements, and error %v, want at most 101 and %v", elements, last, context.Canceled)
			}
		})
	}
}

// walked reads all pages by cursor, and calls between after each.
func walked(t *testing.T, m relayer.Reader, s relayer.Selector, perPage int, between func()) (ids []string) {
	t.Helper()
	cursor, isLast := new(relayer.Cursor), false
	for !isLast {
		page := must(m.List(t.Context(), relayer.ListQuery{Selector: s, PerPage: perPage, After: cursor}))(t)
		if page.Pagination.CurrentPage != 0 || page.Pagination.PerPage != perPage || page.Position == "" {
			t.Errorf("pagination %+v at position %q", page.Pagination, page.Position)
		}
		if len(page.Relayers) > perPage || page.Next != "" && len(page.Relayers) < perPage {
			t.Errorf("a page of %d relayers before %q, want %d", len(page.Relayers), page.Next, perPage)
		}
		ids = append(ids, idsOf(page.Relayers)...)
		*cursor, isLast = page.Next, page.Next == ""
		between()
	}
	return ids
}

func TestList_After(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		ids := created(t, m, 25)
		for _, perPage := range []int{1, 5, 24, 25, 26} {
			if got := walked(t, m, relayer.Selector{}, perPage, func() {}); !slices.Equal(got, ids) {
				t.Errorf("pages of %d: %q", perPage, got)
			}
		}
		some := ids[3:9]
		if got := walked(t, m, relayer.Selector{}.Where("id", some...), 2, func() {}); !slices.Equal(got, some) {
			t.Errorf("a selection: %q, want %q", got, some)
		}
		// What is deleted and created meanwhile moves nothing.
		next := 0
		got := walked(t, m, mustParse(t, "network=sepolia"), 4, func() {
			if next < 5 {
				mustSucceed(t, m.Delete(t.Context(), ids[next]))
				mustCreate(t, m, minimal(fmt.Sprint("later-", next)))
				next++
			}
		})
		wantEachOnce(t, got, append(slices.Clone(ids[5:]), "later-0", "later-1", "later-2", "later-3", "later-4"))
	})
}

// A position resumes a watch of the same selection only: another one would lack changes.
func TestWatch_PositionOfAnotherSelector(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	selectors := []string{"", "network=sepolia", "network=sepolia,paused=false", "network=sepolia|x", "network=x"}
	for _, from := range selectors {
		page := must(m.List(t.Context(), relayer.ListQuery{Selector: mustParse(t, from)}))(t)
		for _, to := range selectors {
			f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{Selector: mustParse(t, to), After: page.Position, Heartbeats: true}))
			must(m.Patch(t.Context(), "r", []byte(`{"name":"n`+from+to+`"}`)))(t)
			change, err, _ := f.next()
			if isGap := errors.Is(err, relayer.ErrGap); isGap != (from != to) || !isGap && err != nil {
				t.Errorf("a position of %q in a watch of %q: %+v, error %v", from, to, change, err)
			}
		}
	}
	page := must(m.Within(mustParse(t, "network=sepolia")).List(t.Context(), relayer.ListQuery{}))(t)
	if err := firstError(m.Watch(t.Context(), relayer.WatchQuery{After: page.Position})); !errors.Is(err, relayer.ErrGap) {
		t.Errorf("a position of a view in a watch of all: %v", err)
	}
}

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
	listing := must(store.List(t.Context(), relayer.StoreQuery{Limit: 100}))(t)
	ctx := t.Context()
	m := managerOf(t, fixedStore{store, listing})
	view := m.Within(mustParse(t, "network=sepolia|mainnet,paused=false"))
	for name, c := range map[string]struct {
		most float64
		read func() error
	}{
		"get":            {0, func() error { return second(m.Documents().Get(ctx, listing.Records[0].ID)) }},
		"get in a view":  {0, func() error { return second(view.Documents().Get(ctx, listing.Records[0].ID)) }},
		"list":           {3, func() error { return second(m.Documents().List(ctx, relayer.ListQuery{PerPage: 100})) }},
		"list in a view": {16, func() error { return second(view.Documents().List(ctx, relayer.ListQuery{PerPage: 100})) }},
	} {
		mustSucceed(t, c.read())
		if got := testing.AllocsPerRun(100, func() { _ = c.read() }); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, got, c.most)
		}
	}
}
