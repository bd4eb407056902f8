package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/transfer"
)

// importing returns the store as an Importer, or skips the case.
func importing(t *testing.T, store relayer.Store) transfer.Importer {
	t.Helper()
	importer, ok := store.(transfer.Importer)
	if !ok {
		t.Skip("the store has no Import")
	}
	return importer
}

// mustImport imports records, and sets the sequences that they got.
func mustImport(t *testing.T, store relayer.Store, records []relayer.Record) {
	t.Helper()
	if err := importing(t, store).Import(t.Context(), records); err != nil {
		t.Fatalf("Import of %d records: %v", len(records), err)
	}
	stored, err := store.List(t.Context(), relayer.StoreQuery{Limit: math.MaxInt})
	must(t, err)
	sequences := make(map[string]uint64)
	for _, rec := range stored.Records {
		sequences[rec.ID] = rec.Sequence
	}
	for i, rec := range records {
		records[i].Sequence = sequences[rec.ID]
	}
}

// moved returns records of another store, whose revisions are not in order. Every second record
// has a claim.
func moved(prefix string, n int) []relayer.Record {
	records := make([]relayer.Record, n)
	for i := range records {
		records[i] = sample(fmt.Sprintf("%s-%04d", prefix, i))
		records[i].Revision = uint64(1 + i*17%n + 3*n)
		if i%2 == 0 {
			records[i].Claim = "claim of " + records[i].ID
		}
	}
	return records
}

// importRevisions imports the least and the greatest revision. What is written later, of any ID, has
// a greater one, and a lower import does not change that.
func importRevisions(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 2)
	for _, revision := range []uint64{0, transfer.MaxRevision + 1, 1 << 63, math.MaxUint64} {
		for at := range 3 {
			records := moved("m", 3)
			records[at].Revision = revision
			if err := importing(t, store).Import(t.Context(), records); err == nil {
				t.Fatalf("Import at revision %d: no error", revision)
			}
			wantPage(t, store, 0, 10, all)
		}
	}
	for round, revision := range []uint64{1, 1 << 53, transfer.MaxRevision} {
		records := moved(fmt.Sprint("m", round), 5)
		records[2].Revision = revision
		mustImport(t, store, records)
		wantSame(t, "Get", mustGet(t, store, records[2].ID), records[2])
		mustImport(t, store, moved(fmt.Sprint("low", round), 3))
		wantAbove(t, revision, mustCreate(t, store, sample(fmt.Sprint("created-", round))))
		all[0] = mustUpdate(t, store, all[0])
		wantAbove(t, revision, all[0])
		mustDelete(t, store, records[2])
		wantAbove(t, revision, mustCreate(t, store, records[2]))
	}
}

func wantAbove(t *testing.T, revision uint64, rec relayer.Record) {
	t.Helper()
	if rec.Revision <= revision {
		t.Fatalf("%q was written at revision %d after %d was imported", rec.ID, rec.Revision, revision)
	}
}

// importLarge imports more records at once than fit in a page or a block.
func importLarge(t *testing.T, store relayer.Store) {
	all := moved("m", 3000)
	for i := range all {
		all[i].Document = bytes.Repeat([]byte{byte(i)}, 1+i%1500)
	}
	mustImport(t, store, all)
	for _, offset := range []int{0, 1023, 1024, 2047, 2990} {
		wantPage(t, store, offset, 20, all)
	}
	wantPage(t, store, 0, len(all), all)
}

// readersSeeImportsWhole lists during imports that succeed and imports that are
// rejected. A total that is not a multiple of the batch means that a partial import was
// visible.
func readersSeeImportsWhole(t *testing.T, store relayer.Store) {
	const batch, imports = 20, 12
	importer := importing(t, store)
	stop := repeatUntilStopped(t, func() error {
		page, err := store.List(t.Context(), relayer.StoreQuery{Limit: batch * imports})
		if err != nil || page.Total%batch != 0 || len(page.Records) != page.Total {
			return fmt.Errorf("list: %d records and a total of %d, error %v", len(page.Records), page.Total, err)
		}
		return nil
	})
	for i := range imports {
		records := moved(fmt.Sprintf("batch-%02d", i), batch)
		rejected := slices.Clone(records)
		rejected[batch-1].ID = rejected[0].ID
		if err := importer.Import(t.Context(), rejected); !errors.Is(err, relayer.ErrExists) {
			t.Errorf("Import with an ID twice: error is %v", err)
		}
		if err := importer.Import(t.Context(), records); err != nil {
			t.Errorf("Import: %v", err)
		}
	}
	stop()
}

// retainedChanges is how many changes a store with a history must retain.
const retainedChanges = 100

// wantHistory fails unless the history has the selected ones of the changes, which are all
// that were made, newest first. It returns them. The oldest ones need not be retained.
func wantHistory(t *testing.T, store relayer.Store, query relayer.HistoryQuery, changes []relayer.RecordChange) []relayer.RecordChange {
	t.Helper()
	var want []relayer.RecordChange
	retained := 0
	for i, change := range changes {
		isSelected := (query.ID == "" || change.Record.ID == query.ID) && (query.Before == 0 || change.Record.Revision < query.Before)
		if isSelected && len(want) < query.Limit {
			change.Record.Private = nil
			want = append(want, change)
			if i < retainedChanges {
				retained++
			}
		}
	}
	got, err := store.History(t.Context(), query)
	if err != nil || len(got) < retained || len(got) > len(want) {
		t.Fatalf("History(%+v): %d changes, want %d to %d; error %v", query, len(got), retained, len(want), err)
	}
	for i, change := range got {
		wantChange(t, change, want[i])
		if age := time.Since(change.Time); !change.Time.IsZero() && (age < -time.Second || age > time.Hour) {
			t.Fatalf("History(%+v): change %d has the time %s", query, i, change.Time)
		}
	}
	return got
}

// importingHistory skips the case if the store cannot import changes.
func importingHistory(t *testing.T, store relayer.Store) transfer.HistoryImporter {
	t.Helper()
	importer, ok := store.(transfer.HistoryImporter)
	if _, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1}); !ok || errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the store cannot import a history")
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
	begun := watch(t, store)
	load(nil)
	load(past(1, 2, 3, 7, 1<<20, 1<<40))
	wantAll()
	wantPage(t, store, 0, 10, nil)

	after, err := store.List(t.Context(), relayer.StoreQuery{})
	must(t, err)
	resumed := watchAfter(t, store, after.Position)
	made := mustCreate(t, store, sample("made"))
	wantAbove(t, 1<<40, made)
	all = slices.Insert(all, 0, relayer.RecordChange{Kind: relayer.ChangeCreated, Record: made})
	wantAll()
	resumed.want(t, relayer.ChangeCreated, made, relayer.Record{})

	load(past(made.Revision+1, made.Revision+5))
	wantAll()
	mustDelete(t, store, made)
	last, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1})
	if err != nil || len(last) != 1 || last[0].Kind != relayer.ChangeDeleted || last[0].Record.Revision <= made.Revision+5 {
		t.Fatalf("the last change is %+v, error %v", last, err)
	}
	// Imported changes are not in the feed. They may cause a gap.
	for _, w := range []watcher{begun, resumed} {
		if change, err, _ := w.next(); change.Record.ID != made.ID && !errors.Is(err, relayer.ErrGap) {
			t.Fatalf("Watch: %s %q, error %v, want a change of %q or %v", change.Kind, change.Record.ID, err, made.ID, relayer.ErrGap)
		}
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
		"an unknown kind":  func(c *relayer.RecordChange) { c.Kind = "moved" },
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
