package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
)

// importing returns the store as one that imports, or skips the case.
func importing(t *testing.T, store relayer.Store) relayer.ImportStore {
	t.Helper()
	importer, ok := store.(relayer.ImportStore)
	if !ok {
		t.Skip("the store has no Import")
	}
	return importer
}

func mustImport(t *testing.T, store relayer.Store, records []relayer.Record) {
	t.Helper()
	if err := importing(t, store).Import(t.Context(), records); err != nil {
		t.Fatalf("Import of %d records: %v", len(records), err)
	}
}

func wantImportError(t *testing.T, store relayer.Store, records []relayer.Record, want error) {
	t.Helper()
	err := importing(t, store).Import(t.Context(), records)
	wantError(t, fmt.Sprintf("Import of %d records", len(records)), err, want)
}

// moved are records as another store would hand them over: every second with a
// claim, and with revisions in no order.
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
	all[4].Revision = relayer.MaxRevision
	all[5].Document, all[5].Private = nil, []byte{}
	all[6].Document = bytes.Repeat([]byte{0, 1, 0xff}, 100_000)
	mustImport(t, store, all)
	wantEveryPage(t, store, all)
	for _, want := range all {
		wantSame(t, "Get", mustGet(t, store, want.ID), want)
	}
}

func importOne(t *testing.T, store relayer.Store) {
	one := moved("m", 1)
	mustImport(t, store, one)
	wantPage(t, store, 0, 10, one)
}

func importNothing(t *testing.T, store relayer.Store) {
	mustImport(t, store, nil)
	mustImport(t, store, []relayer.Record{})
	wantPage(t, store, 0, 10, nil)
	all := createMany(t, store, 2)
	mustImport(t, store, nil)
	wantPage(t, store, 0, 10, all)
}

// importBetweenWrites imports several times, before and after creates, updates
// and deletes.
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

// importedTakeWrites changes and deletes at the revisions imported, and at no
// others.
func importedTakeWrites(t *testing.T, store relayer.Store) {
	all := moved("m", 3)
	mustImport(t, store, all)
	stale := all[0]
	stale.Revision++
	_, err := store.Update(t.Context(), stale)
	wantError(t, "Update at another revision", err, relayer.ErrConflict)
	err = store.Delete(t.Context(), all[2].ID, all[2].Revision+1)
	wantError(t, "Delete at another revision", err, relayer.ErrConflict)
	all[1].Claim = "moved"
	all[1] = mustUpdate(t, store, all[1])
	_, err = store.Create(t.Context(), claiming("new", all[0].Claim))
	wantError(t, "Create with an imported claim", err, relayer.ErrClaimed)
	_, err = store.Create(t.Context(), sample(all[0].ID))
	wantError(t, "Create of an imported id", err, relayer.ErrExists)
	mustDelete(t, store, all[0])
	again := mustCreate(t, store, claiming(all[0].ID, all[0].Claim))
	wantPage(t, store, 0, 10, []relayer.Record{all[1], all[2], again})
}

// writesAfterImport: what is written after an import, of whatever id, gets a
// revision above all of those imported, up to the greatest there can be.
func writesAfterImport(t *testing.T, store relayer.Store) {
	stands := mustCreate(t, store, sample("stands"))
	for round, revision := range []uint64{1 << 20, 1 << 53, relayer.MaxRevision} {
		records := moved(fmt.Sprint("m", round), 5)
		records[2].Revision = revision
		mustImport(t, store, records)
		wantAbove(t, revision, mustCreate(t, store, sample(fmt.Sprint("created-", round))))
		stands = mustUpdate(t, store, stands)
		wantAbove(t, revision, stands)
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

// importOfLower: an import does not set revisions back.
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

// importRefused spoils one record of many, at the front, in the middle and at
// the end. Nothing of the others must be left, so that all of them can be
// imported once it is put right.
func importRefused(t *testing.T, store relayer.Store) {
	const count = 9
	spoils := []struct {
		name  string
		spoil func(rec *relayer.Record, other relayer.Record)
		want  error
	}{
		{"taken id", func(rec *relayer.Record, _ relayer.Record) { rec.ID = "stands" }, relayer.ErrExists},
		{"held claim", func(rec *relayer.Record, _ relayer.Record) { rec.Claim = "held" }, relayer.ErrClaimed},
		{"both", func(rec *relayer.Record, _ relayer.Record) { rec.ID, rec.Claim = "stands", "held" }, relayer.ErrExists},
		{"id twice", func(rec *relayer.Record, other relayer.Record) { rec.ID = other.ID }, relayer.ErrExists},
		{"claim twice", func(rec *relayer.Record, other relayer.Record) { rec.Claim = other.Claim }, relayer.ErrClaimed},
		{"all twice", func(rec *relayer.Record, other relayer.Record) { *rec = other }, relayer.ErrExists},
	}
	all := []relayer.Record{mustCreate(t, store, claiming("stands", "held"))}
	for _, c := range spoils {
		for _, at := range []int{0, count / 2, count - 1} {
			t.Logf("%s at %d", c.name, at)
			records := moved(fmt.Sprintf("%s-%d", c.name, at), count)
			good := records[at]
			c.spoil(&records[at], records[(at+2)%count&^1])
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
	for _, revision := range []uint64{0, relayer.MaxRevision + 1, 1 << 63, math.MaxUint64} {
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

func importedBytesNotAliased(t *testing.T, store relayer.Store) {
	want, given := moved("m", 3), moved("m", 3)
	mustImport(t, store, given)
	for i := range given {
		scribble(given[i])
		given[i] = relayer.Record{}
	}
	wantPage(t, store, 0, 10, want)
	for _, rec := range want {
		got := mustGet(t, store, rec.ID)
		wantSame(t, "Get after the caller changed what it gave to Import", got, rec)
		scribble(got)
	}
	wantPage(t, store, 0, 10, want)
}

// importLarge imports more at a time than a page of anything holds.
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

func importCancelled(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 2)
	err := importing(t, store).Import(cancelled(t), moved("m", 3))
	wantError(t, "Import", err, context.Canceled)
	wantPage(t, store, 0, 10, all)
	mustImport(t, store, moved("m", 3))
}

func importAfterClose(t *testing.T, store relayer.Store) {
	closer, ok := store.(io.Closer)
	if !ok {
		t.Skip("the store has no Close")
	}
	importer := importing(t, store)
	if err := closer.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	err := importer.Import(t.Context(), moved("m", 3))
	wantError(t, "Import", err, relayer.ErrUnavailable)
}

// racingImports has imports and creates fight for one id, which stands at
// another place in each import. One wins, and of the others nothing is left.
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
		all = append(all, batches[wantOneWinner(t, errs, relayer.ErrExists)]...)
	}
	wantPage(t, store, 0, len(all)+1, all)
}

// concurrentImports has imports that do not touch each other all arrive, and
// each of them in one piece.
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
		for i, want := range batches[contender] {
			wantSame(t, fmt.Sprintf("record %d", at+i), page[at+i], want)
		}
	}
}

// readersSeeImportsWhole lists while imports come and are refused. A total that
// is not one of whole imports shows that a part was seen.
func readersSeeImportsWhole(t *testing.T, store relayer.Store) {
	const batch, imports = 50, 40
	importer := importing(t, store)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				recs, total, err := store.List(t.Context(), 0, batch*imports)
				if err != nil || total%batch != 0 || len(recs) != total {
					t.Errorf("list: %d records and a total of %d, error %v", len(recs), total, err)
					return
				}
			}
		})
	}
	for i := range imports {
		records := moved(fmt.Sprintf("batch-%02d", i), batch)
		refused := slices.Clone(records)
		refused[batch-1].ID = refused[0].ID
		if err := importer.Import(t.Context(), refused); !errors.Is(err, relayer.ErrExists) {
			t.Errorf("Import with an id twice: error is %v", err)
		}
		if err := importer.Import(t.Context(), records); err != nil {
			t.Errorf("Import: %v", err)
		}
	}
	close(stop)
	readers.Wait()
}

// importsAfterReopening: what was imported is there after reopening, and so is
// what it does to revisions, even where nothing that was imported is left.
func importsAfterReopening(t *testing.T, open Opener) {
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
