package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// fiveMethods hides all that a store offers beside its five methods.
type fiveMethods struct{ relayer.Store }

// storeKinds make empty stores to copy from and to.
var storeKinds = map[string]func(testing.TB) relayer.Store{
	"memory":       func(testing.TB) relayer.Store { return memory.New() },
	"bolt":         openBolt,
	"five methods": func(testing.TB) relayer.Store { return fiveMethods{memory.New()} },
}

func openBolt(t testing.TB) relayer.Store {
	t.Helper()
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Check(context.Background()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// intercepted has the calls of a store that Copy makes go through a function of
// the test's.
type intercepted struct {
	relayer.Store
	through func(method string, call func() error) error
}

func (s intercepted) List(ctx context.Context, offset, limit int) (records []relayer.Record, total int, err error) {
	err = s.through("List", func() (err error) {
		records, total, err = s.Store.List(ctx, offset, limit)
		return err
	})
	return records, total, err
}

func (s intercepted) Create(ctx context.Context, rec relayer.Record) (made relayer.Record, err error) {
	err = s.through("Create", func() (err error) {
		made, err = s.Store.Create(ctx, rec)
		return err
	})
	return made, err
}

type interceptedImporter struct{ intercepted }

func (s interceptedImporter) Import(ctx context.Context, records []relayer.Record) error {
	return s.through("Import", func() error { return s.Store.(relayer.ImportStore).Import(ctx, records) })
}

func intercept(store relayer.Store, through func(method string, call func() error) error) relayer.Store {
	if _, ok := store.(relayer.ImportStore); ok {
		return interceptedImporter{intercepted{store, through}}
	}
	return intercepted{store, through}
}

// copySample is a record whose parts tell what they are of, and whose private
// part says that it is secret.
func copySample(id string) relayer.Record {
	return relayer.Record{
		ID:       id,
		Claim:    "claim of " + id,
		Document: []byte(`{"id":"` + id + `"}`),
		Private:  []byte(`{"secret":"of ` + id + `"}`),
	}
}

func put(t testing.TB, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Create(context.Background(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// fillWithGaps gives a store n records that have been through something: some
// updated, so that revisions do not follow the order, some without a claim, and
// others deleted between them.
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
			rec.Document = append(rec.Document, ' ')
			if _, err := store.Update(context.Background(), rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, rec := range gone {
		if err := store.Delete(context.Background(), rec.ID, rec.Revision); err != nil {
			t.Fatal(err)
		}
	}
}

func listAll(t testing.TB, store relayer.Store) []relayer.Record {
	t.Helper()
	records, total, err := store.List(context.Background(), 0, math.MaxInt32)
	if err != nil || len(records) != total {
		t.Fatalf("%d records and a total of %d, error %v", len(records), total, err)
	}
	return records
}

// wantBeginning fails unless dst holds the beginning of src, revisions included
// where it takes them over.
func wantBeginning(t testing.TB, dst, src relayer.Store) {
	t.Helper()
	have, want := listAll(t, dst), listAll(t, src)
	if len(have) > len(want) {
		t.Fatalf("%d records are in the destination, and %d in the source", len(have), len(want))
	}
	_, revisions := dst.(relayer.ImportStore)
	for i, rec := range have {
		if rec.ID != want[i].ID || rec.Claim != want[i].Claim || revisions && rec.Revision != want[i].Revision ||
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
	if err := transfer.Copy(context.Background(), dst, src, options...); err != nil {
		t.Fatal(err)
	}
	wantCopied(t, dst, src)
}

func eachPair(t *testing.T, test func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store)) {
	for from, newSrc := range storeKinds {
		for to, newDst := range storeKinds {
			t.Run(from+" to "+to, func(t *testing.T) { test(t, newDst, newSrc) })
		}
	}
}

// TestCopy copies stores of sizes around those of the pages, twice, and then
// goes on writing to the copy.
func TestCopy(t *testing.T) {
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
			wantGoesOn(t, dst, before)
		}
	})
}

// wantGoesOn fails unless a copy takes writes as the store it was copied from
// would: claims are held, and revisions grow.
func wantGoesOn(t *testing.T, dst relayer.Store, before []relayer.Record) {
	t.Helper()
	made := put(t, dst, copySample("new"))
	_, revisions := dst.(relayer.ImportStore)
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

// TestCopyGoesOn: what is there already is not written again.
func TestCopyGoesOn(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 200)
	for _, held := range []int{0, 1, 16, 100, 199, 200} {
		dst := memory.New()
		if err := dst.Import(context.Background(), listAll(t, src)[:held]); err != nil {
			t.Fatal(err)
		}
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

func TestCopyProgress(t *testing.T) {
	eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
		for _, n := range []int{0, 1, 70, 1200} {
			src, dst := newSrc(t), newDst(t)
			fillWithGaps(t, src, n)
			var told []transfer.Progress
			copyAll(t, dst, src, transfer.WithProgress(func(p transfer.Progress) { told = append(told, p) }))
			if _, ok := src.(relayer.CheckStore); ok {
				told = wantChecked(t, told, n)
			}
			wantProgress(t, told, n)
		}
	})
}

// wantChecked fails unless the source was checked first, and returns what was told
// after that.
func wantChecked(t *testing.T, told []transfer.Progress, total int) []transfer.Progress {
	t.Helper()
	want := []transfer.Progress{{Stage: transfer.Checking, Done: 0, Total: total}}
	if total > 0 {
		want = append(want, transfer.Progress{Stage: transfer.Checking, Done: total, Total: total})
	}
	if len(told) < len(want) || !slices.Equal(told[:len(want)], want) {
		t.Fatalf("told %+v, want %+v first", told, want)
	}
	return told[len(want):]
}

// wantProgress fails unless copying and verifying are all there is, both began with nothing, went on by 1 to 500
// relayers at a time, and ended with everything.
func wantProgress(t *testing.T, told []transfer.Progress, total int) {
	t.Helper()
	verifying := slices.IndexFunc(told, func(p transfer.Progress) bool { return p.Stage == transfer.Verifying })
	if verifying < 1 {
		t.Fatalf("verifying begins at report %d of %d", verifying, len(told))
	}
	for _, stage := range [][]transfer.Progress{told[:verifying], told[verifying:]} {
		if stage[0].Done != 0 || stage[len(stage)-1].Done != total {
			t.Errorf("told from %+v to %+v, of %d", stage[0], stage[len(stage)-1], total)
		}
		for i, p := range stage {
			if p.Total != total || p.Stage != stage[0].Stage || i > 0 && (p.Done <= stage[i-1].Done || p.Done > stage[i-1].Done+500) {
				t.Errorf("told %+v after %+v", p, stage[:i])
			}
		}
	}
}

// TestCopyOfLargeDocuments counts the bytes that a copy asks for at a time.
func TestCopyOfLargeDocuments(t *testing.T) {
	src := memory.New()
	for i := range 32 {
		part := bytes.Repeat([]byte{byte(i)}, 1<<20)
		put(t, src, relayer.Record{ID: fmt.Sprint(i), Document: part, Private: part})
	}
	pages := 0
	dst := memory.New()
	counted := interceptedImporter{intercepted{dst, func(method string, call func() error) error {
		_, before, _ := dst.List(context.Background(), 0, 0)
		err := call()
		_, after, _ := dst.List(context.Background(), 0, 0)
		grown := after - before
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

// TestCopiesIntoOneStore: one of several goes through, whatever the others are
// told.
func TestCopiesIntoOneStore(t *testing.T) {
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
				t.Errorf("nobody's copy went through: %v", errs)
			}
			wantCopied(t, dst, src)
		})
	}
}

// withMap is a store that cannot be compared with another.
type withMap struct {
	relayer.Store
	_ map[string]int
}

func TestCopyArguments(t *testing.T) {
	ctx := context.Background()
	a, b := memory.New(), memory.New()
	put(t, a, copySample("a"))
	for name, err := range map[string]error{
		"no destination": transfer.Copy(ctx, nil, a),
		"no source":      transfer.Copy(ctx, b, nil),
		"one store":      transfer.Copy(ctx, a, a),
		"nil option":     transfer.Copy(ctx, b, a, nil),
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

// weighed is a store that refuses to take over more than so many bytes at once.
type weighed struct {
	*memory.Store
	most int
}

func (s weighed) Import(ctx context.Context, records []relayer.Record) error {
	size := 0
	for _, rec := range records {
		size += len(rec.Document) + len(rec.Private)
	}
	if len(records) > 1 && size > s.most {
		return relayer.ErrUnavailable
	}
	return s.Store.Import(ctx, records)
}

// TestCopyOfLargeAmongSmall has a page of large records after pages of small ones.
func TestCopyOfLargeAmongSmall(t *testing.T) {
	src := memory.New()
	for i := range 1100 {
		rec := copySample(fmt.Sprint(i))
		if i >= 600 && i%3 == 0 {
			rec.Private = make([]byte, 600<<10)
		}
		put(t, src, rec)
	}
	copyAll(t, weighed{memory.New(), 8 << 20}, src)
}
