package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
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
	setSequences(t, store, records)
}

func setSequences(t *testing.T, store relayer.Store, records []relayer.Record) {
	t.Helper()
	stored, _ := mustList(t, store, 0, math.MaxInt)
	sequences := make(map[string]uint64)
	for _, rec := range stored {
		sequences[rec.ID] = rec.Sequence
	}
	for i, rec := range records {
		records[i].Sequence = sequences[rec.ID]
	}
}

func wantImportError(t *testing.T, store relayer.Store, records []relayer.Record, want error) {
	t.Helper()
	err := importing(t, store).Import(t.Context(), records)
	wantError(t, fmt.Sprintf("Import of %d records", len(records)), err, want)
}

// moved returns records of another store: every second one with a claim, and with
// unordered revisions.
func moved(prefix string, n int) []relayer.Record {
	records := make([]relayer.Record, n)
	for i := range records {
		records[i] = sample(fmt.Sprintf("%s-%04d", prefix, i))
		records[i].Revision = uint64(1 + i*7%n + 3*n)
		if i%2 == 0 {
			records[i].Claim = "claim of " + records[i].ID
		}
	}
	return records
}

func importKeepsRecords(t *testing.T, store relayer.Store) {
	all := moved("m", 40)
	all[3].Revision = 1
	all[4].Revision = transfer.MaxRevision
	all[5].Document, all[5].Private = nil, []byte{}
	all[6].Document = bytes.Repeat([]byte{0, 1, 0xff}, 100_000)
	mustImport(t, store, all)
	wantEveryPage(t, store, all)
	for _, want := range all {
		wantSame(t, "Get", mustGet(t, store, want.ID), want)
	}
}

func importNothing(t *testing.T, store relayer.Store) {
	mustImport(t, store, nil)
	mustImport(t, store, []relayer.Record{})
	wantPage(t, store, 0, 10, nil)
	all := createMany(t, store, 2)
	mustImport(t, store, nil)
	wantPage(t, store, 0, 10, all)
}

func importBetweenWrites(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 5)
	for round := range 4 {
		records := moved(fmt.Sprint("m", round), 30)
		mustImport(t, store, records)
		all = append(all, records...)
		all = append(all, mustCreate(t, store, sample(fmt.Sprint("created-", round))))
		wantEveryPage(t, store, all)
		at := len(all) - 10
		all[at].Document = []byte(`{"changed":true}`)
		all[at] = mustUpdate(t, store, all[at])
		mustDelete(t, store, all[at+1])
		mustDelete(t, store, all[0])
		all = slices.Delete(slices.Delete(all, at+1, at+2), 0, 1)
		wantEveryPage(t, store, all)
	}
}

// importedChange requires the imported revisions for changes and deletes.
func importedChange(t *testing.T, store relayer.Store) {
	all := moved("m", 3)
	mustImport(t, store, all)
	stale := all[0]
	stale.Revision++
	_, err := store.Update(t.Context(), stale)
	wantError(t, "Update at another revision", err, relayer.ErrConflict)
	err = store.Delete(t.Context(), all[2].ID, all[2].Revision+1, deleteNote)
	wantError(t, "Delete at another revision", err, relayer.ErrConflict)
	all[1].Claim = "moved"
	all[1] = mustUpdate(t, store, all[1])
	_, err = store.Create(t.Context(), claiming("new", all[0].Claim))
	wantError(t, "Create with an imported claim", err, relayer.ErrClaimed)
	_, err = store.Create(t.Context(), sample(all[0].ID))
	wantError(t, "Create of an imported ID", err, relayer.ErrExists)
	mustDelete(t, store, all[0])
	again := mustCreate(t, store, claiming(all[0].ID, all[0].Claim))
	wantPage(t, store, 0, 10, []relayer.Record{all[1], all[2], again})
}

// writesAfterImport requires revisions above all imported ones, for writes of any ID.
func writesAfterImport(t *testing.T, store relayer.Store) {
	existing := mustCreate(t, store, sample("existing"))
	for round, revision := range []uint64{1 << 20, 1 << 53, transfer.MaxRevision} {
		records := moved(fmt.Sprint("m", round), 5)
		records[2].Revision = revision
		mustImport(t, store, records)
		wantAbove(t, revision, mustCreate(t, store, sample(fmt.Sprint("created-", round))))
		existing = mustUpdate(t, store, existing)
		wantAbove(t, revision, existing)
		wantAbove(t, revision, mustUpdate(t, store, records[0]))
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

func importOfLower(t *testing.T, store relayer.Store) {
	high := moved("high", 1)
	high[0].Revision = 1 << 40
	mustImport(t, store, high)
	last := mustCreate(t, store, sample("one"))
	low := moved("low", 3)
	mustImport(t, store, low)
	wantAbove(t, last.Revision, mustCreate(t, store, sample("two")))
	wantPage(t, store, 1, 4, slices.Concat(high, []relayer.Record{last}, low, []relayer.Record{mustGet(t, store, "two")}))
}

// importRejected makes one record of many invalid: the first, the middle or the last.
// The others must not be stored, so that all can be imported after the correction.
func importRejected(t *testing.T, store relayer.Store) {
	const count = 9
	faults := []struct {
		name  string
		apply func(rec *relayer.Record, other relayer.Record)
		want  error
	}{
		{"taken ID", func(rec *relayer.Record, _ relayer.Record) { rec.ID = "existing" }, relayer.ErrExists},
		{"held claim", func(rec *relayer.Record, _ relayer.Record) { rec.Claim = "held" }, relayer.ErrClaimed},
		{"both", func(rec *relayer.Record, _ relayer.Record) { rec.ID, rec.Claim = "existing", "held" }, relayer.ErrExists},
		{"ID twice", func(rec *relayer.Record, other relayer.Record) { rec.ID = other.ID }, relayer.ErrExists},
		{"claim twice", func(rec *relayer.Record, other relayer.Record) { rec.Claim = other.Claim }, relayer.ErrClaimed},
		{"all twice", func(rec *relayer.Record, other relayer.Record) { *rec = other }, relayer.ErrExists},
	}
	all := []relayer.Record{mustCreate(t, store, claiming("existing", "held"))}
	for _, c := range faults {
		for _, at := range []int{0, count / 2, count - 1} {
			t.Logf("%s at %d", c.name, at)
			records := moved(fmt.Sprintf("%s-%d", c.name, at), count)
			good := records[at]
			c.apply(&records[at], records[(at+2)%count&^1])
			wantImportError(t, store, records, c.want)
			wantPage(t, store, 0, 1000, all)
			records[at] = good
			mustImport(t, store, records)
			all = append(all, records...)
			wantPage(t, store, 0, 1000, all)
		}
	}
}

func importRevisionOutOfRange(t *testing.T, store relayer.Store) {
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
	mustImport(t, store, moved("m", 3))
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

func importCanceled(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 2)
	err := importing(t, store).Import(canceled(t), moved("m", 3))
	wantError(t, "Import", err, context.Canceled)
	wantPage(t, store, 0, 10, all)
	mustImport(t, store, moved("m", 3))
}

func importAfterClose(t *testing.T, store relayer.Store) {
	importing(t, store)
	mustClose(t, store)
	wantImportError(t, store, moved("m", 3), relayer.ErrUnavailable)
}

// racingImports runs concurrent imports and creates of one ID, at a different position
// in each import. Exactly one succeeds, and the others store nothing.
func racingImports(t *testing.T, store relayer.Store) {
	const batch = 8
	importer := importing(t, store)
	var all []relayer.Record
	for round := range rounds {
		contested := sample(fmt.Sprint("contested-", round))
		batches := make([][]relayer.Record, racers)
		errs := race(racers, func(i int) (err error) {
			if i%4 == 0 {
				batches[i] = make([]relayer.Record, 1)
				batches[i][0], err = store.Create(t.Context(), contested)
				return err
			}
			batches[i] = moved(fmt.Sprintf("r%d-%d", round, i), batch)
			batches[i][i%batch].ID = contested.ID
			return importer.Import(t.Context(), batches[i])
		})
		added := batches[wantOneWinner(t, errs, relayer.ErrExists)]
		setSequences(t, store, added)
		all = append(all, added...)
	}
	wantPage(t, store, 0, len(all)+1, all)
}

// concurrentImports runs independent imports. All succeed, and none is interleaved with
// another.
func concurrentImports(t *testing.T, store relayer.Store) {
	const batch = 25
	importer := importing(t, store)
	batches := make([][]relayer.Record, racers)
	for i := range batches {
		batches[i] = moved(fmt.Sprintf("batch-%02d", i), batch)
	}
	for i, err := range race(racers, func(i int) error { return importer.Import(t.Context(), batches[i]) }) {
		if err != nil {
			t.Fatalf("contender %d: %v", i, err)
		}
	}
	page, total := mustList(t, store, 0, racers*batch+1)
	if total != racers*batch || len(page) != total {
		t.Fatalf("%d records listed and a total of %d, want %d", len(page), total, racers*batch)
	}
	for at := 0; at < total; at += batch {
		var contender int
		if _, err := fmt.Sscanf(page[at].ID, "batch-%02d-0000", &contender); err != nil {
			t.Fatalf("record %d is %q, in the middle of an import", at, page[at].ID)
		}
		setSequences(t, store, batches[contender])
		for i, want := range batches[contender] {
			wantSame(t, fmt.Sprintf("record %d", at+i), page[at+i], want)
		}
	}
}

// readersSeeImportsWhole lists during imports that succeed and imports that are
// rejected. A total that is not a multiple of the batch means that a partial import was
// visible.
func readersSeeImportsWhole(t *testing.T, store relayer.Store) {
	const batch, imports = 50, 40
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

// importsAfterReopening requires imported records after reopening, and revisions above
// the imported ones even after their deletion.
func importsAfterReopening(t *testing.T, open opener) {
	store := open(t)
	all := append([]relayer.Record{mustCreate(t, store, sample("first"))}, moved("m", 30)...)
	all[7].Revision = 1 << 40
	mustImport(t, store, all[1:])
	closeStore(t, store)

	store = open(t)
	wantEveryPage(t, store, all)
	_, err := store.Create(t.Context(), claiming("new", all[1].Claim))
	wantError(t, "Create with an imported claim", err, relayer.ErrClaimed)
	wantImportError(t, store, all[3:4], relayer.ErrExists)
	mustDelete(t, store, all[7])
	all = slices.Delete(all, 7, 8)
	closeStore(t, store)

	store = openUntilEnd(t, open)
	last := mustCreate(t, store, sample("last"))
	wantAbove(t, 1<<40, last)
	wantEveryPage(t, store, append(all, last))
}
