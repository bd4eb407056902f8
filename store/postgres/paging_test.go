//go:build unix

package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestList_AfterManyDeletes compares pages at any offset with a slice, after half of
// the records were deleted. The positions have wide gaps.
func TestList_AfterManyDeletes(t *testing.T) {
	t.Parallel()
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	store := open(t, postgres.WithSchema(schema))
	var current []relayer.Record
	for part := range 5 {
		var some []relayer.Record
		for i := range 400 {
			rec := record(fmt.Sprintf("part%d-%d", part, i))
			rec.Revision = uint64(1 + i)
			some = append(some, rec)
		}
		if err := store.Import(t.Context(), some); err != nil {
			t.Fatal(err)
		}
		current = append(current, some...)
		// A few positions, a whole chunk of them, and many.
		gap := []int{5, 128, 512, 128 * 128, 100_000_000}[part%5]
		execute(t, admin, fmt.Sprintf("UPDATE %s.state SET last_sequence = last_sequence + %d", schema, gap))
	}
	wantPages(t, store, random, current, 60)

	// All of a range, and a third of the rest.
	isGone := func(i int) bool { return i > 700 && i < 1300 || random.IntN(3) == 0 }
	var left []relayer.Record
	var deleting sync.WaitGroup
	slots := make(chan struct{}, 200)
	for i, rec := range current {
		if !isGone(i) {
			left = append(left, rec)
			continue
		}
		slots <- struct{}{}
		deleting.Go(func() {
			defer func() { <-slots }()
			if err := store.Delete(t.Context(), rec.ID, rec.Revision, nil); err != nil {
				t.Error(err)
			}
		})
	}
	deleting.Wait()
	wantPages(t, store, random, left, 100)

	// New records come last.
	for i := range 50 {
		left = append(left, create(t, store, record(fmt.Sprintf("new-%d", i))))
	}
	wantPages(t, store, random, left, 60)
	wantConsistent(t, store)
}

// wantPages reads pages at both ends, and at random offsets between and beyond.
func wantPages(t *testing.T, store *postgres.Store, random *rand.Rand, want []relayer.Record, count int) {
	t.Helper()
	type page struct{ offset, limit int }
	pages := []page{{0, 0}, {0, 1}, {0, 100}, {len(want) - 1, 1}, {len(want) - 1, 100}, {len(want), 1}, {len(want) + 1000, 100}, {0, len(want) + 1}}
	for range count {
		pages = append(pages, page{random.IntN(len(want) + 5), random.IntN(12)})
	}
	for _, page := range pages {
		recs, total, err := list(t.Context(), store, relayer.StoreQuery{Offset: page.offset, Limit: page.limit})
		if err != nil || total != len(want) {
			t.Fatalf("page %v: total %d, error %v, want %d", page, total, err, len(want))
		}
		from := min(page.offset, len(want))
		expected := want[from:min(from+page.limit, len(want))]
		if !slices.EqualFunc(recs, expected, same) {
			t.Fatalf("page %v: %d records, want %d that begin with %.60v", page, len(recs), len(expected), expected)
		}
		selected, total, err := list(t.Context(), store, relayer.StoreQuery{Terms: [][]string{{"common"}}, Offset: page.offset, Limit: page.limit})
		if err != nil || total != len(want) || !slices.EqualFunc(selected, expected, same) {
			t.Fatalf("page %v of all as a selection: %d records, total %d, error %v", page, len(selected), total, err)
		}
	}
}

// TestPositions_RefusedWrites has the store and the server refuse some writes:
// neither a position nor a revision is taken by them.
func TestPositions_RefusedWrites(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	addTrigger(t, admin, schema, `IF NEW.id LIKE 'bad%' THEN RAISE EXCEPTION 'not this one'; END IF;`)
	execute(t, admin, fmt.Sprintf(onInsert, schema))
	var want []relayer.Record
	for i := range 60 {
		if i%3 == 0 {
			if _, err := store.Create(t.Context(), record(fmt.Sprintf("bad-%d", i))); err == nil {
				t.Fatal("no error")
			}
		}
		want = append(want, create(t, store, record(numbered(i))))
		if i%5 == 0 {
			_, _ = store.Create(t.Context(), record(numbered(i)))
		}
	}
	taken := queryOne[string](t, admin, fmt.Sprintf("SELECT last_sequence || ' ' || last_revision FROM %s.state", schema))
	if taken != "60 60" {
		t.Errorf("last position and revision: %s, want 60 60", taken)
	}
	wantPages(t, store, rand.New(rand.NewPCG(1, 1)), want, 20)
	wantConsistent(t, store)
}

// TestPostings_AfterChurn: what was deleted leaves no row behind that a search would read.
func TestPostings_AfterChurn(t *testing.T) {
	t.Parallel()
	schema := schemaName()
	admin := newPool(t, server.ConnString())
	store := open(t, postgres.WithSchema(schema))
	postings := func() int { return queryOne[int](t, admin, "SELECT count(*) FROM "+schema+".postings") }
	const many = 600 // more than one row
	var writing sync.WaitGroup
	for i := range many {
		writing.Go(func() {
			made, err := store.Create(t.Context(), record(numbered(i)))
			if err == nil {
				err = store.Delete(t.Context(), made.ID, made.Revision, nil)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	if got := postings(); got != 0 {
		t.Errorf("%d postings without a relayer", got)
	}
	rec := create(t, store, record("kept"))
	remove(t, store, create(t, store, record("gone")))
	if got, want := postings(), len(rec.Terms)+1; got != want {
		t.Errorf("%d postings of one relayer, want %d", got, want)
	}
	found, total, err := list(t.Context(), store, relayer.StoreQuery{Contains: []string{"text"}, Limit: 10})
	if err != nil || total != 1 || !same(found[0], rec) {
		t.Errorf("a search finds %v of %d, error %v", found, total, err)
	}
	wantConsistent(t, store)
}
