package table_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/table"
	"github.com/go-relayer/relayer/store/storeutil"
)

func record(id, claim string) *table.Record {
	return table.NewRecord(relayer.Record{ID: id, Claim: claim, Document: []byte("document of " + id), Private: []byte("private")})
}

func revised(id, claim string, revision uint64) *table.Record {
	return table.NewRecord(relayer.Record{ID: id, Revision: revision, Claim: claim})
}

// A write is validated against the earlier writes of its batch, and the table has none of
// them before they are applied.
func TestBatch_SeesEarlierWrites(t *testing.T) {
	records := table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0)
	b := records.Begin()
	a, second := record("a", "claim"), record("b", "")
	steps := []struct {
		name string
		err  error
		want error
	}{
		{"create", b.Create(a), nil},
		{"create again", b.Create(record("a", "")), relayer.ErrExists},
		{"create with its claim", b.Create(record("b", "claim")), relayer.ErrClaimed},
		{"update to the same claim", b.Update(revised("a", "claim", 1)), nil},
		{"update of the old revision", b.Update(revised("a", "", 1)), relayer.ErrConflict},
		{"update to another claim", b.Update(revised("a", "other", 2)), nil},
		{"create with the released claim", b.Create(second), nil},
		{"take its claim", b.Update(revised("b", "other", 4)), relayer.ErrClaimed},
		{"delete", b.Delete("a", 3, nil), nil},
		{"delete again", b.Delete("a", 3, nil), relayer.ErrNotFound},
		{"update after the delete", b.Update(revised("a", "", 3)), relayer.ErrNotFound},
		{"claim of the deleted record", b.Update(revised("b", "other", 4)), nil},
		{"create after the delete", b.Create(record("a", "claim")), nil},
		{"import of a taken ID", b.Import([]*table.Record{record("c", ""), record("a", "")}), relayer.ErrExists},
		{"nothing of the import", b.Delete("c", 0, nil), relayer.ErrNotFound},
	}
	for _, step := range steps {
		if !errors.Is(step.err, step.want) || step.want == nil && step.err != nil {
			t.Errorf("%s: error %v, want %v", step.name, step.err, step.want)
		}
	}
	if _, err := records.Get(t.Context(), "b"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("before the batch is applied: error %v", err)
	}
	records.Apply(b)
	wantContent(t, records, []string{"b other 6", "a claim 7"})
}

// TestApply_RandomBatches applies batches of random writes, and compares the table with
// one to which the accepted writes were applied one at a time.
func TestApply_RandomBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	batched, single := table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0), table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0)
	for range 2000 {
		b := batched.Begin()
		for range 1 + random.IntN(12) {
			id, claim := fmt.Sprint("id-", random.IntN(20)), ""
			if n := random.IntN(8); n > 0 {
				claim = fmt.Sprint("claim-", n)
			}
			revision := uint64(0)
			if found, err := single.Get(t.Context(), id); err == nil && random.IntN(8) > 0 {
				revision = found.Revision
			}
			kind := random.IntN(3)
			apply := func(b *table.Batch) error {
				switch kind {
				case 0:
					return b.Create(record(id, claim))
				case 1:
					return b.Update(revised(id, claim, revision))
				}
				return b.Delete(id, revision, nil)
			}
			alone := single.Begin()
			want := apply(alone)
			if got := apply(b); !errors.Is(got, want) {
				t.Fatalf("write of %s: error %v in the batch, %v alone", id, got, want)
			}
			if want == nil {
				single.Apply(alone)
			}
		}
		batched.Apply(b)
		wantContent(t, batched, content(t, single))
	}
}

// TestList_RandomSelections compares selections of some thousand records with a scan of all.
// Records change their terms, and are deleted and created again.
func TestList_RandomSelections(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	shares := []int{1, 2, 3, 10, 500} // a term has one of so many records
	records := table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0)
	for range 6 {
		b := records.Begin()
		for range 3000 {
			rec := relayer.Record{ID: fmt.Sprint("id-", random.IntN(6000)), Text: fmt.Sprint(random.IntN(1000))}
			for i, share := range shares {
				if random.IntN(share) == 0 {
					rec.Terms = append(rec.Terms, fmt.Sprint("term", i))
				}
			}
			current, err := records.Get(t.Context(), rec.ID)
			switch {
			case errors.Is(err, relayer.ErrNotFound):
				_ = b.Create(table.NewRecord(rec)) // it may exist since an earlier write of the batch
			case random.IntN(3) == 0:
				_ = b.Delete(rec.ID, current.Revision, nil)
			default:
				rec.Revision = current.Revision
				_ = b.Update(table.NewRecord(rec))
			}
		}
		records.Apply(b)
		page, err := records.List(t.Context(), relayer.StoreQuery{Limit: 6000})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			wantSelection(t, records, page.Records, randomQuery(random, len(shares), page.Records))
		}
	}
}

// The cost of a selection by many values hardly depends on their number.
func TestList_ManyValues(t *testing.T) {
	const count, values = 20_000, 1000
	records := table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0)
	b := records.Begin()
	var any []string
	for i := range count {
		term := fmt.Sprintf("label=%04d", i%values)
		if i < values {
			any = append(any, term)
		}
		if err := b.Create(table.NewRecord(relayer.Record{ID: fmt.Sprint("r-", i), Terms: []string{term}})); err != nil {
			t.Fatal(err)
		}
	}
	records.Apply(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, err := records.List(t.Context(), relayer.StoreQuery{Terms: [][]string{any}, Limit: 1})
	runtime.ReadMemStats(&after)
	if err != nil || found.Total != count || found.Records[0].ID != "r-0" {
		t.Errorf("%d found, first %v, error %v", found.Total, found.Records, err)
	}
	// Each record is copied some ten times. One after the other, the lists would be copied 500 times.
	if size := after.TotalAlloc - before.TotalAlloc; size > 20*count*8 {
		t.Errorf("the list allocated %d bytes", size)
	}
}

func randomQuery(random *rand.Rand, terms int, all []relayer.Record) relayer.StoreQuery {
	query := relayer.StoreQuery{Offset: random.IntN(len(all)) * random.IntN(2), Limit: random.IntN(40)}
	if random.IntN(3) == 0 {
		query.After = all[random.IntN(len(all))].Sequence
	}
	for range random.IntN(3) {
		query.Contains = append(query.Contains, fmt.Sprint(random.IntN(100)))
	}
	for range random.IntN(4) {
		var any []string
		for range 1 + random.IntN(2)*random.IntN(3) {
			any = append(any, fmt.Sprint("term", random.IntN(terms+1)))
		}
		query.Terms = append(query.Terms, any)
	}
	if random.IntN(4) == 0 {
		for range random.IntN(100) {
			query.IDs = append(query.IDs, fmt.Sprint("id-", random.IntN(6000)))
		}
	}
	return query
}

func wantSelection(t *testing.T, records *table.Table, all []relayer.Record, query relayer.StoreQuery) {
	t.Helper()
	want, _ := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}, query)
	got, err := records.List(t.Context(), query)
	isSame := func(a, b relayer.Record) bool {
		return a.ID == b.ID && a.Revision == b.Revision && a.Sequence == b.Sequence && a.Text == b.Text && slices.Equal(a.Terms, b.Terms)
	}
	if err != nil || got.Total != want.Total || !slices.EqualFunc(got.Records, want.Records, isSame) {
		t.Fatalf("%+v: %d records of %d, want %d of %d; error %v", query, len(got.Records), got.Total, len(want.Records), want.Total, err)
	}
}

func content(t *testing.T, records *table.Table) (all []string) {
	t.Helper()
	page, err := records.List(t.Context(), relayer.StoreQuery{Limit: 1000})
	if err != nil || page.Total != len(page.Records) {
		t.Fatalf("%d records, total %d, error %v", len(page.Records), page.Total, err)
	}
	for _, rec := range page.Records {
		if got, err := records.Get(t.Context(), rec.ID); err != nil || got.Revision != rec.Revision {
			t.Errorf("Get of %s: revision %d, error %v, want %d", rec.ID, got.Revision, err, rec.Revision)
		}
		all = append(all, fmt.Sprint(rec.ID, " ", rec.Claim, " ", rec.Revision))
	}
	return all
}

func wantContent(t *testing.T, records *table.Table, want []string) {
	t.Helper()
	if got := content(t, records); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Fatalf("records %q, want %q", got, want)
	}
}

func stored(sequence, revision uint64, claim string, isDamaged bool) *table.Record {
	r := table.NewRecord(relayer.Record{ID: fmt.Sprint("id", sequence), Sequence: sequence, Revision: revision, Claim: claim})
	r.IsDamaged = isDamaged
	return r
}

func TestLoad_Contradictions(t *testing.T) {
	for name, rejected := range map[string]*table.Record{
		"same ID":       table.NewRecord(relayer.Record{ID: "id1", Sequence: 2, Revision: 3}),
		"same claim":    stored(2, 3, "claim1", false),
		"high sequence": stored(9, 3, "", false),
		"high revision": stored(2, 9, "", false),
	} {
		records := table.New(table.Counters{NextSequence: 9, NextRevision: 9}, 0)
		if !records.Load(stored(1, 1, "claim1", false)) || records.Load(rejected) {
			t.Errorf("%s: not rejected, or the first record was", name)
		}
	}
}

// A damaged record is named by reads of it and of its page, keeps its ID and its claim,
// and can only be deleted. Other records stay usable.
func TestLoad_DamagedRecord(t *testing.T) {
	records := table.New(table.Counters{NextSequence: 9, NextRevision: 9}, 0)
	for _, r := range []*table.Record{stored(1, 1, "", false), stored(2, 1<<60, "claim", true), stored(3, 3, "", false)} {
		if !records.Load(r) {
			t.Fatal("a record was rejected")
		}
	}
	ctx := t.Context()
	_, getErr := records.Get(ctx, "id2")
	_, listErr := records.List(ctx, relayer.StoreQuery{Offset: 1, Limit: 1})
	_, documentsErr := records.List(ctx, relayer.StoreQuery{Offset: 1, Limit: 1, DocumentsOnly: true})
	_, searchErr := records.List(ctx, relayer.StoreQuery{Contains: []string{"any"}, Limit: 3})
	_, selectErr := records.List(ctx, relayer.StoreQuery{Terms: [][]string{{"any"}}, Limit: 3})
	_, idsErr := records.List(ctx, relayer.StoreQuery{IDs: []string{"id2"}, Limit: 3})
	b := records.Begin()
	for i, err := range []error{getErr, listErr, documentsErr, searchErr, selectErr, idsErr, b.Update(revised("id2", "", 1<<60))} {
		if !errors.Is(err, relayer.ErrCorrupt) || !strings.Contains(err.Error(), `"id2"`) {
			t.Errorf("call %d: error %v, want %v with the ID", i, err, relayer.ErrCorrupt)
		}
	}
	if err := errors.Join(b.Update(revised("id1", "", 1)), b.Delete("id3", 3, nil)); err != nil {
		t.Errorf("writes of other records: %v", err)
	}
	if err := b.Create(record("id4", "claim")); !errors.Is(err, relayer.ErrClaimed) {
		t.Errorf("create with the claim of a damaged record: error %v", err)
	}
	if err := errors.Join(b.Delete("id2", 0, nil), b.Create(record("id4", "claim"))); err != nil {
		t.Errorf("after the delete: %v", err)
	}
	records.Apply(b)
	wantContent(t, records, []string{"id1  9", "id4 claim 12"})
}

// The claim of a damaged record may be the part that is damaged.
func TestLoad_ClaimOfDamagedRecord(t *testing.T) {
	for _, damagedFirst := range []bool{true, false} {
		records := table.New(table.Counters{NextSequence: 9, NextRevision: 9}, 0)
		if !records.Load(stored(1, 1, "claim", damagedFirst)) || !records.Load(stored(2, 1, "claim", !damagedFirst)) {
			t.Fatal("a record was rejected")
		}
		damaged, sound := "id2", "id1"
		if damagedFirst {
			damaged, sound = sound, damaged
		}
		b := records.Begin()
		if err := b.Delete(damaged, 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Create(record("new", "claim")); !errors.Is(err, relayer.ErrClaimed) {
			t.Errorf("error %v, want %v", err, relayer.ErrClaimed)
		}
		records.Apply(b)
		b = records.Begin()
		if err := errors.Join(b.Delete(sound, 1, nil), b.Create(record("new", "claim"))); err != nil {
			t.Error(err)
		}
	}
}

// The size limits a batch, so each part counts.
func TestRecord_Size(t *testing.T) {
	rec := relayer.Record{
		ID: "1", Claim: "12", Text: "1234", Document: make([]byte, 8), Private: make([]byte, 16), Note: make([]byte, 32), Terms: []string{"term"},
	}
	if size := table.NewRecord(rec).Size(); size != 63 {
		t.Errorf("the size is %d, want 63", size)
	}
}
