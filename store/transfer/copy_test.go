package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// wrapped is a store that is neither an Importer nor a Checker.
type wrapped struct{ relayer.Store }

// storeKinds return empty stores to copy from and to.
var storeKinds = map[string]func(testing.TB) relayer.Store{
	"memory":  func(testing.TB) relayer.Store { return memory.New() },
	"bolt":    openBolt,
	"wrapped": func(testing.TB) relayer.Store { return wrapped{memory.New()} },
}

func openBolt(t testing.TB) relayer.Store {
	t.Helper()
	store := openAt(t, filepath.Join(t.TempDir(), "relayers.db"))
	t.Cleanup(func() { must(t, store.Check(context.Background())) })
	return store
}

// openAt opens a file and closes it when the test ends.
func openAt(t testing.TB, path string, options ...bolt.Option) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(t.Context(), path, options...)
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// replaceIn replaces texts in a closed file, which must have them.
func replaceIn(t testing.TB, path string, oldNew ...string) {
	t.Helper()
	whole, err := os.ReadFile(path)
	must(t, err)
	replaced := strings.NewReplacer(oldNew...).Replace(string(whole))
	if replaced == string(whole) {
		t.Fatal("the texts are nowhere in the file")
	}
	must(t, os.WriteFile(path, []byte(replaced), 0o600))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errorOf returns the error of a call that has another result too.
func errorOf[T any](_ T, err error) error { return err }

// intercepted passes the calls that Copy makes to a function of the test.
type intercepted struct {
	relayer.Store
	through func(method string, call func() error) error
}

func (s intercepted) List(ctx context.Context, query relayer.StoreQuery) (page relayer.Listing, err error) {
	err = s.through("List", func() (err error) {
		page, err = s.Store.List(ctx, query)
		return err
	})
	return page, err
}

func (s intercepted) Create(ctx context.Context, rec relayer.Record) (made relayer.Record, err error) {
	err = s.through("Create", func() (err error) {
		made, err = s.Store.Create(ctx, rec)
		return err
	})
	return made, err
}

func (s intercepted) History(ctx context.Context, query relayer.HistoryQuery) (found []relayer.RecordChange, err error) {
	err = s.through("History", func() (err error) {
		found, err = s.Store.History(ctx, query)
		return err
	})
	return found, err
}

type interceptedImporter struct{ intercepted }

func (s interceptedImporter) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	return s.through("ImportHistory", func() error { return s.Store.(transfer.HistoryImporter).ImportHistory(ctx, changes) })
}

func (s interceptedImporter) Import(ctx context.Context, records []relayer.Record) error {
	return s.through("Import", func() error { return s.Store.(transfer.Importer).Import(ctx, records) })
}

func intercept(store relayer.Store, through func(method string, call func() error) error) relayer.Store {
	if _, ok := store.(transfer.Importer); ok {
		return interceptedImporter{intercepted{store, through}}
	}
	return intercepted{store, through}
}

// beforeList returns a source that calls act before its nth list of a copy, counted from 1. The
// first one reads no records.
func beforeList(src relayer.Store, nth int, act func()) relayer.Store {
	lists := 0
	return intercept(src, func(method string, call func() error) error {
		if method == "List" {
			lists++
		}
		if method == "List" && lists == nth {
			act()
		}
		return call()
	})
}

// copySample returns a record whose parts contain its ID, and whose private part is
// marked as secret.
func copySample(id string) relayer.Record {
	return relayer.Record{
		ID:       id,
		Claim:    "claim of " + id,
		Terms:    []string{"common", "id=" + id},
		Text:     "text of " + id,
		Note:     []byte(`{"note":"of ` + id + `"}`),
		Document: []byte(`{"id":"` + id + `"}`),
		Private:  []byte(`{"secret":"of ` + id + `"}`),
	}
}

func put(t testing.TB, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Create(context.Background(), rec)
	must(t, err)
	return made
}

// fillWithGaps creates n records with a history: some are updated, so that revisions do
// not follow the order, some have no claim, and others between them are deleted.
func fillWithGaps(t testing.TB, store relayer.Store, n int) {
	t.Helper()
	var gone []relayer.Record
	for i := range n {
		rec := copySample(fmt.Sprintf("id-%04d", i))
		if i%5 == 0 {
			rec.Claim = ""
		}
		rec = put(t, store, rec)
		if i%3 == 0 {
			gone = append(gone, put(t, store, copySample(fmt.Sprintf("gone-%04d", i))))
		}
		if i%4 == 0 {
			rec.Document = []byte(`{"updated":true}`)
			rec.Terms = rec.Terms[:1]
			must(t, errorOf(store.Update(context.Background(), rec)))
		}
	}
	for _, rec := range gone {
		must(t, store.Delete(context.Background(), rec.ID, rec.Revision, nil))
	}
}

func listAll(t testing.TB, store relayer.Store) []relayer.Record {
	t.Helper()
	page, err := store.List(context.Background(), relayer.StoreQuery{Limit: math.MaxInt})
	if err != nil || len(page.Records) != page.Total {
		t.Fatalf("%d records and a total of %d, error %v", len(page.Records), page.Total, err)
	}
	return page.Records
}

// wantBeginning fails unless dst contains the beginning of src, with its revisions if
// dst imports them.
func wantBeginning(t testing.TB, dst, src relayer.Store) {
	t.Helper()
	have, want := listAll(t, dst), listAll(t, src)
	if len(have) > len(want) {
		t.Fatalf("%d records are in the destination, and %d in the source", len(have), len(want))
	}
	_, revisions := dst.(transfer.Importer)
	for i, rec := range have {
		if rec.ID != want[i].ID || rec.Claim != want[i].Claim || revisions && rec.Revision != want[i].Revision ||
			!slices.Equal(rec.Terms, want[i].Terms) || rec.Text != want[i].Text || !bytes.Equal(rec.Note, want[i].Note) ||
			!bytes.Equal(rec.Document, want[i].Document) || !bytes.Equal(rec.Private, want[i].Private) {
			t.Fatalf("record %d is %+v, want %+v", i, rec, want[i])
		}
	}
}

func wantCopied(t testing.TB, dst, src relayer.Store) {
	t.Helper()
	wantBeginning(t, dst, src)
	if have, want := len(listAll(t, dst)), len(listAll(t, src)); have != want {
		t.Fatalf("%d records are in the destination, and %d in the source", have, want)
	}
}

func copyAll(t testing.TB, dst, src relayer.Store) {
	t.Helper()
	must(t, transfer.Copy(context.Background(), dst, src))
	wantCopied(t, dst, src)
}

func eachPair(t *testing.T, test func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store)) {
	for from, newSrc := range storeKinds {
		for to, newDst := range storeKinds {
			t.Run(from+" to "+to, func(t *testing.T) { test(t, newDst, newSrc) })
		}
	}
}

// TestCopy_AllPairsOfStores copies stores of sizes around those of the pages, twice,
// and then writes to the copy.
func TestCopy_AllPairsOfStores(t *testing.T) {
	eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
		for _, n := range []int{0, 1, 99, 100, 101, 250} {
			dst, src := newDst(t), newSrc(t)
			fillWithGaps(t, src, n)
			before := listAll(t, src)
			copyAll(t, dst, src)
			copyAll(t, dst, src)
			if after := listAll(t, src); len(after) != len(before) {
				t.Fatalf("the source had %d records and has %d", len(before), len(after))
			}
			wantWritable(t, dst, before)
		}
	})
}

// wantWritable fails unless claims are held in a copy and its revisions grow.
func wantWritable(t *testing.T, dst relayer.Store, before []relayer.Record) {
	t.Helper()
	made := put(t, dst, copySample("new"))
	_, revisions := dst.(transfer.Importer)
	for _, rec := range before {
		if revisions && made.Revision <= rec.Revision {
			t.Fatalf("a create got revision %d, and %q has %d", made.Revision, rec.ID, rec.Revision)
		}
		if rec.Claim == "" {
			continue
		}
		if _, err := dst.Create(context.Background(), relayer.Record{ID: "thief", Claim: rec.Claim}); !errors.Is(err, relayer.ErrClaimed) {
			t.Fatalf("create with the claim of %q: error is %v", rec.ID, err)
		}
	}
}

// Records that the destination contains are not written again.
func TestCopy_Resume(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 200)
	for _, held := range []int{0, 1, 16, 100, 199, 200} {
		dst := memory.New()
		must(t, dst.Import(context.Background(), listAll(t, src)[:held]))
		imports := 0
		copyAll(t, interceptedImporter{intercepted{dst, func(method string, call func() error) error {
			if method == "Import" {
				imports++
			}
			return call()
		}}}, src)
		if (imports == 0) != (held == 200) {
			t.Errorf("%d of 200 held: %d imports", held, imports)
		}
	}
}

// TestCopy_LargeRelayers: an import has at most 8 MiB, or one record.
func TestCopy_LargeRelayers(t *testing.T) {
	src, imports := memory.New(), make(map[string]int)
	for i, size := range []int{9 << 20, 4 << 20, 4 << 20, 1, 7 << 20} {
		rec := copySample(fmt.Sprint("r", i))
		rec.Document = make([]byte, size)
		rec.Private = nil
		put(t, src, rec)
	}
	copyAll(t, intercept(memory.New(), func(method string, call func() error) error {
		imports[method]++
		return call()
	}), src)
	// The history of a memory store retains 16 MiB.
	if imports["Import"] != 3 || imports["ImportHistory"] != 2 {
		t.Errorf("%v calls, want 3 imports, and 2 of the history", imports)
	}
}

// At least one of several concurrent copies succeeds.
func TestCopy_Concurrent(t *testing.T) {
	for kind, newDst := range storeKinds {
		t.Run(kind, func(t *testing.T) {
			src, dst := memory.New(), newDst(t)
			fillWithGaps(t, src, 300)
			errs := make([]error, 4)
			var done sync.WaitGroup
			for i := range errs {
				done.Go(func() { errs[i] = transfer.Copy(context.Background(), dst, src) })
			}
			done.Wait()
			for _, err := range errs {
				if err != nil && !errors.Is(err, transfer.ErrDiffers) {
					t.Error(err)
				}
			}
			if !slices.Contains(errs, nil) {
				t.Errorf("no copy succeeded: %v", errs)
			}
			wantCopied(t, dst, src)
		})
	}
}

func TestCopy_RefusedStores(t *testing.T) {
	for _, other := range []relayer.Store{nil, opener{memory.New()}} {
		if transfer.Copy(t.Context(), other, memory.New()) == nil || transfer.Copy(t.Context(), memory.New(), other) == nil {
			t.Errorf("a copy with %T has no error", other)
		}
	}
}

type opener struct{ relayer.Store }

func (opener) Open(_ context.Context, rec relayer.Record) (relayer.Record, error) { return rec, nil }
