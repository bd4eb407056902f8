package storetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/transfer"
)

// partsAtLimits has notes of any bytes: only the Manager interprets them.
func partsAtLimits(t *testing.T, store relayer.Store) {
	longest := sample(strings.Repeat("i", limits.ID))
	longest.Claim = strings.Repeat("c", limits.Claim)
	longest.Terms = nil
	for i := range limits.Terms {
		longest.Terms = append(longest.Terms, numbered(i)+strings.Repeat("t", limits.Term-len(numbered(i))))
	}
	longest.Text = strings.Repeat("é", limits.Text/2)
	longest.Note = slices.Repeat([]byte{0, 0xff, 'n', '"'}, limits.Note/4)
	shortest := relayer.Record{ID: "s"}
	empty := relayer.Record{ID: "e", Terms: []string{}, Note: []byte{}, Document: []byte{}, Private: []byte{}}
	bytes := sample("bytes")
	for i := range 256 {
		bytes.Note = append(bytes.Note, byte(i))
	}
	w := watch(t, store)
	var all []relayer.Record
	for _, rec := range []relayer.Record{longest, shortest, empty, bytes} {
		all = append(all, mustCreate(t, store, rec))
	}
	wantPage(t, store, 0, 10, all)
	for i, rec := range all {
		wantSame(t, "Get", mustGet(t, store, rec.ID), rec)
		w.want(t, relayer.ChangeCreated, rec, relayer.Record{})
		other := all[len(all)-1-i]
		rec.Text, rec.Note = other.Text, other.Note
		all[i] = mustUpdate(t, store, rec)
	}
	wantPage(t, store, 0, 10, all)
	wantSelected(t, store, relayer.StoreQuery{Contains: []string{longest.Text}, Limit: 10}, all)
	if err := store.Delete(t.Context(), all[0].ID, all[0].Revision, longest.Note); err != nil {
		t.Fatalf("Delete with the longest note: %v", err)
	}
}

// notesBelongToRevisions: a note describes one write, and a write that failed leaves none.
func notesBelongToRevisions(t *testing.T, store relayer.Store) {
	w := watch(t, store)
	made := mustCreate(t, store, sample("one"))
	changed := made
	changed.Note = []byte("second")
	changed = mustUpdate(t, store, changed)
	wantSame(t, "Get", mustGet(t, store, "one"), changed)
	stale := made
	stale.Note = []byte("stale")
	_, err := store.Update(t.Context(), stale)
	wantError(t, "Update", err, relayer.ErrConflict)
	wantError(t, "Delete", store.Delete(t.Context(), "one", made.Revision, []byte("stale")), relayer.ErrConflict)
	wantPage(t, store, 0, 10, []relayer.Record{changed})
	silent := changed
	silent.Note = nil
	silent = mustUpdate(t, store, silent)
	wantPage(t, store, 0, 10, []relayer.Record{silent})
	mustDelete(t, store, silent)
	later := mustCreate(t, store, sample("two"))
	w.want(t, relayer.ChangeCreated, made, relayer.Record{})
	w.want(t, relayer.ChangeUpdated, changed, made)
	w.want(t, relayer.ChangeUpdated, silent, changed)
	if deleted := w.wantDeleted(t, silent); later.Revision <= deleted {
		t.Fatalf("a create has revision %d, and the delete before it %d", later.Revision, deleted)
	}
	w.want(t, relayer.ChangeCreated, later, relayer.Record{})
}

// listDocumentsOnly permits a store to return all parts.
func listDocumentsOnly(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 7)
	all[2].Document, all[2].Note = []byte(`{"changed":true}`), []byte("changed")
	all[2] = mustUpdate(t, store, all[2])
	for _, query := range []relayer.StoreQuery{
		{Limit: 100}, {Offset: 2, Limit: 3}, {After: all[1].Sequence, Limit: 2}, {IDs: []string{all[2].ID, all[5].ID}, Limit: 9},
		{Terms: [][]string{{"common"}}, Limit: 4}, {Contains: []string{"text"}, Limit: 4}, {},
	} {
		query.DocumentsOnly = true
		wantSelected(t, store, query, all)
	}
}

// retainedChanges is how many changes a store with a history must retain in the cases.
const retainedChanges = 100

// withHistory skips the case if the store has no history.
func withHistory(t *testing.T, store relayer.Store) {
	t.Helper()
	if _, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1}); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the store has no history")
	}
}

// historyOfWrites compares the history with what a watch has returned.
func historyOfWrites(t *testing.T, store relayer.Store) {
	withHistory(t, store)
	wantHistory(t, store, relayer.HistoryQuery{Limit: 10}, nil)
	w := watch(t, store)
	random := newRandom(t)
	for i := range retainedChanges - 4 {
		if err := writeAny(t.Context(), store, numbered(random.IntN(4)), i); err != nil {
			t.Fatal(err)
		}
		refused, _ := mustList(t, store, 0, 1)
		for _, rec := range refused {
			_, err := store.Create(t.Context(), rec)
			wantError(t, "Create", err, relayer.ErrExists)
			rec.Revision++
			_, err = store.Update(t.Context(), rec)
			wantError(t, "Update", err, relayer.ErrConflict)
			wantError(t, "Delete", store.Delete(t.Context(), rec.ID, rec.Revision, nil), relayer.ErrConflict)
		}
	}
	mustDelete(t, store, mustCreate(t, store, sample("gone")))
	changes := w.readUntil(t, mustCreate(t, store, sample("last")))
	slices.Reverse(changes)
	for _, id := range []string{"", numbered(0), numbered(1), "gone", "last", "none", "id-"} {
		for _, before := range []uint64{0, 1, changes[0].Record.Revision, changes[5].Record.Revision, changes[40].Record.Revision - 1, math.MaxUint64} {
			for _, limit := range []int{1, 3, math.MaxInt} {
				wantHistory(t, store, relayer.HistoryQuery{ID: id, Before: before, Limit: limit}, changes)
			}
		}
	}
}

// wantHistory fails unless the history has the selected ones of the changes, which are all
// that were made, newest first.
func wantHistory(t *testing.T, store relayer.Store, query relayer.HistoryQuery, changes []relayer.RecordChange) {
	t.Helper()
	var want []relayer.RecordChange
	for _, change := range changes {
		isSelected := (query.ID == "" || change.Record.ID == query.ID) && (query.Before == 0 || change.Record.Revision < query.Before)
		if isSelected && len(want) < query.Limit {
			change.Record.Private = nil
			want = append(want, change)
		}
	}
	got, err := store.History(t.Context(), query)
	if err != nil || len(got) != len(want) {
		t.Fatalf("History(%+v): %d changes, want %d; error %v", query, len(got), len(want), err)
	}
	for i, change := range want {
		wantChange(t, got[i], change)
		if !got[i].Time.IsZero() {
			t.Fatalf("History(%+v): change %d has the time %s", query, i, got[i].Time)
		}
	}
}

// historyWithoutImports: an import makes no revision, and what follows it does.
func historyWithoutImports(t *testing.T, store relayer.Store) {
	withHistory(t, store)
	importing(t, store)
	first := mustCreate(t, store, sample("first"))
	records := moved("m", 3)
	mustImport(t, store, records)
	want := []relayer.RecordChange{{Kind: relayer.ChangeCreated, Record: first}}
	wantHistory(t, store, relayer.HistoryQuery{Limit: 10}, want)
	changed := mustUpdate(t, store, records[1])
	want = append([]relayer.RecordChange{{
		Kind: relayer.ChangeUpdated, Record: changed, OldTerms: records[1].Terms, OldText: records[1].Text,
	}}, want...)
	wantHistory(t, store, relayer.HistoryQuery{Limit: 10}, want)
	for _, rec := range records {
		wantHistory(t, store, relayer.HistoryQuery{ID: rec.ID, Limit: 10}, want)
	}
}

// importingHistory skips the case if the store cannot import changes.
func importingHistory(t *testing.T, store relayer.Store) transfer.HistoryImporter {
	t.Helper()
	withHistory(t, store)
	importer, ok := store.(transfer.HistoryImporter)
	if !ok {
		t.Skip("the store has no ImportHistory")
	}
	return importer
}

// past returns changes of another store, oldest first.
func past(revisions ...uint64) (changes []relayer.RecordChange) {
	for i, revision := range revisions {
		change := relayer.RecordChange{Kind: relayer.ChangeCreated, Record: sample(numbered(i % 3))}
		if i%4 > 0 {
			change.Kind = []relayer.ChangeKind{relayer.ChangeUpdated, relayer.ChangeDeleted, relayer.ChangeUpdated}[i%4-1]
			change.OldTerms, change.OldText = []string{"old"}, "old"
		}
		if i%3 == 0 {
			change.Record.Claim, change.OldTerms = "any", nil
		}
		change.Record.Revision, change.Record.Sequence, change.Record.Note = revision, uint64(1+i), []byte{0, 0xff, byte(i)}
		changes = append(changes, change)
	}
	return changes
}

// historyImported imports changes twice, and makes others between and after them.
func historyImported(t *testing.T, store relayer.Store) {
	importer := importingHistory(t, store)
	var all []relayer.RecordChange // newest first
	load := func(changes []relayer.RecordChange) {
		t.Helper()
		if err := importer.ImportHistory(t.Context(), changes); err != nil {
			t.Fatalf("ImportHistory: %v", err)
		}
		for _, change := range changes {
			all = slices.Insert(all, 0, change)
		}
	}
	wantAll := func() {
		t.Helper()
		for _, query := range []relayer.HistoryQuery{
			{Limit: 1}, {Limit: math.MaxInt}, {Before: all[2].Record.Revision, Limit: 2}, {ID: all[1].Record.ID, Limit: 2}, {ID: "made", Limit: 9},
		} {
			wantHistory(t, store, query, all)
		}
	}
	load(nil)
	load(past(1, 2, 3, 7, 1<<20, 1<<40))
	wantAll()
	wantPage(t, store, 0, 10, nil)

	// What was imported is not a change of the feed.
	before, err := store.List(t.Context(), relayer.StoreQuery{})
	if err != nil {
		t.Fatal(err)
	}
	w := watchAfter(t, store, before.Position)
	made := mustCreate(t, store, sample("made"))
	wantAbove(t, 1<<40, made)
	all = slices.Insert(all, 0, relayer.RecordChange{Kind: relayer.ChangeCreated, Record: made})
	wantAll()
	w.want(t, relayer.ChangeCreated, made, relayer.Record{})

	load(past(made.Revision+1, made.Revision+5))
	wantAll()
	mustDelete(t, store, made)
	last, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1})
	if err != nil || len(last) != 1 || last[0].Kind != relayer.ChangeDeleted || last[0].Record.Revision <= made.Revision+5 {
		t.Fatalf("the last change is %+v, error %v", last, err)
	}
	wantPage(t, store, 0, 10, nil)
}

// historyRejected makes one of the changes invalid: none of them is stored.
func historyRejected(t *testing.T, store relayer.Store) {
	importer := importingHistory(t, store)
	first := mustUpdate(t, store, mustCreate(t, store, sample("first")))
	want := pastOf(t, store)
	next := first.Revision + 1
	for _, revisions := range [][]uint64{
		{next - 1}, {1, next}, {next, next}, {next + 1, next}, {next, next + 2, next + 1},
	} {
		wantError(t, "ImportHistory", importer.ImportHistory(t.Context(), past(revisions...)), relayer.ErrConflict)
		wantHistory(t, store, relayer.HistoryQuery{Limit: math.MaxInt}, want)
	}
	for name, spoil := range map[string]func(*relayer.RecordChange){
		"revision 0":       func(c *relayer.RecordChange) { c.Record.Revision = 0 },
		"a revision above": func(c *relayer.RecordChange) { c.Record.Revision = transfer.MaxRevision + 1 },
		"no ID":            func(c *relayer.RecordChange) { c.Record.ID = "" },
		"a heartbeat":      func(c *relayer.RecordChange) { c.Kind = relayer.ChangeHeartbeat },
		"a long old text":  func(c *relayer.RecordChange) { c.OldText = strings.Repeat("x", limits.Text+1) },
	} {
		changes := past(next, next+1, next+2)
		spoil(&changes[1])
		if err := importer.ImportHistory(t.Context(), changes); err == nil {
			t.Fatalf("ImportHistory of %s: no error", name)
		}
	}
	wantError(t, "ImportHistory", importer.ImportHistory(canceled(t), past(next)), context.Canceled)
	wantHistory(t, store, relayer.HistoryQuery{Limit: math.MaxInt}, want)
	wantPage(t, store, 0, 10, []relayer.Record{first})
}

// pastOf returns the history of a store, newest first.
func pastOf(t *testing.T, store relayer.Store) []relayer.RecordChange {
	t.Helper()
	changes, err := store.History(t.Context(), relayer.HistoryQuery{Limit: math.MaxInt})
	if err != nil {
		t.Fatalf("History: %v", err)
	}
	return changes
}
