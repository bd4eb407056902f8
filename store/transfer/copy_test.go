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

func copyAll(t testing.TB, dst, src relayer.Store, options ...transfer.Option) {
	t.Helper()
	must(t, transfer.Copy(context.Background(), dst, src, options...))
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
		for _, n := range []int{0, 1, 15, 16, 17, 300} {
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

// report is one call of the function of WithProgress.
type report struct {
	Stage       string
	Done, Total int
}

func withReports(handle func(report)) transfer.Option {
	return transfer.WithProgress(func(stage string, done, total int) { handle(report{stage, done, total}) })
}

func TestCopy_Progress(t *testing.T) {
	eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
		for _, n := range []int{0, 1, 70, 600} {
			src, dst := newSrc(t), newDst(t)
			fillWithGaps(t, src, n)
			var reports []report
			copyAll(t, dst, src, withReports(func(r report) { reports = append(reports, r) }))
			if _, ok := src.(transfer.Checker); ok {
				reports = wantChecked(t, reports, n)
			}
			wantProgress(t, reports, n)
		}
	})
}

// wantChecked fails unless the source was checked first, and returns the later reports.
func wantChecked(t *testing.T, reports []report, total int) []report {
	t.Helper()
	want := []report{{Stage: "checking", Done: 0, Total: total}}
	if total > 0 {
		want = append(want, report{Stage: "checking", Done: total, Total: total})
	}
	if len(reports) < len(want) || !slices.Equal(reports[:len(want)], want) {
		t.Fatalf("reports %+v, want %+v first", reports, want)
	}
	return reports[len(want):]
}

// wantProgress fails unless there are two stages, copying and verifying, which start at
// 0, advance by 1 to 500 relayers at a time, and end at the total.
func wantProgress(t *testing.T, reports []report, total int) {
	t.Helper()
	verifying := slices.IndexFunc(reports, func(r report) bool { return r.Stage == "verifying" })
	if verifying < 1 {
		t.Fatalf("verifying begins at report %d of %d", verifying, len(reports))
	}
	for _, stage := range [][]report{reports[:verifying], reports[verifying:]} {
		if stage[0].Done != 0 || stage[len(stage)-1].Done != total {
			t.Errorf("reports from %+v to %+v, of %d", stage[0], stage[len(stage)-1], total)
		}
		for i, r := range stage {
			if r.Total != total || r.Stage != stage[0].Stage || i > 0 && (r.Done <= stage[i-1].Done || r.Done > stage[i-1].Done+500) {
				t.Errorf("reports %+v after %+v", r, stage[:i])
			}
		}
	}
}

// TestCopy_LargeDocuments limits the bytes of each page.
func TestCopy_LargeDocuments(t *testing.T) {
	src := memory.New()
	for i := range 32 {
		part := bytes.Repeat([]byte{byte(i)}, 1<<20)
		put(t, src, relayer.Record{ID: fmt.Sprint(i), Document: part, Private: part})
	}
	pages := 0
	dst := memory.New()
	counted := interceptedImporter{intercepted{dst, func(method string, call func() error) error {
		before, _ := dst.List(context.Background(), relayer.StoreQuery{})
		err := call()
		after, _ := dst.List(context.Background(), relayer.StoreQuery{})
		grown := after.Total - before.Total
		if pages > 0 && grown > 4 {
			t.Errorf("a page of %d records, 2 MiB each", grown)
		}
		if grown > 0 {
			pages++
		}
		return err
	}}}
	copyAll(t, counted, src)
	if pages < 5 {
		t.Errorf("64 MiB in %d pages", pages)
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

// withMap is a store that is not comparable.
type withMap struct {
	relayer.Store
	_ map[string]int
}

func TestCopy_InvalidArguments(t *testing.T) {
	ctx := context.Background()
	a, b := memory.New(), memory.New()
	put(t, a, copySample("a"))
	for name, err := range map[string]error{
		"no destination": transfer.Copy(ctx, nil, a),
		"no source":      transfer.Copy(ctx, b, nil),
		"one store":      transfer.Copy(ctx, a, a),
		"zero option":    transfer.Copy(ctx, b, a, transfer.Option{}),
		"no callback":    transfer.Copy(ctx, b, a, transfer.WithProgress(nil)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(listAll(t, b)) != 0 {
		t.Error("a refused copy has written")
	}
	copyAll(t, withMap{Store: b}, withMap{Store: a})
}

// sizeLimited is a store that rejects an import of many bytes.
type sizeLimited struct {
	*memory.Store
	most int
}

func (s sizeLimited) Import(ctx context.Context, records []relayer.Record) error {
	size := 0
	for _, rec := range records {
		size += len(rec.Document) + len(rec.Private)
	}
	if len(records) > 1 && size > s.most {
		return relayer.ErrUnavailable
	}
	return s.Store.Import(ctx, records)
}

// A page of large records follows pages of small ones.
func TestCopy_LargeAmongSmallRecords(t *testing.T) {
	src := memory.New()
	for i := range 1100 {
		rec := copySample(fmt.Sprint(i))
		if i >= 600 && i%3 == 0 {
			rec.Private = make([]byte, 600<<10)
		}
		put(t, src, rec)
	}
	copyAll(t, sizeLimited{memory.New(), 8 << 20}, src)
}
