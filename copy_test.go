package relayer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
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
	store, err := bolt.Open(filepath.Join(t.TempDir(), "relayers.db"))
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

func copyAll(t testing.TB, dst, src relayer.Store, options ...relayer.CopyOption) {
	t.Helper()
	if err := relayer.Copy(context.Background(), dst, src, options...); err != nil {
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

// interruption is one way for a call of a store to fail.
type interruption struct {
	err  error
	fail func(call func() error, cancel func()) error
}

var interruptionNames = slices.Sorted(maps.Keys(interruptions))

var interruptions = map[string]interruption{
	"unavailable": {relayer.ErrUnavailable, func(func() error, func()) error {
		return relayer.ErrUnavailable
	}},
	"unknown and done": {relayer.ErrOutcomeUnknown, func(call func() error, _ func()) error {
		_ = call()
		return relayer.ErrOutcomeUnknown
	}},
	"unknown and not done": {relayer.ErrOutcomeUnknown, func(func() error, func()) error {
		return relayer.ErrOutcomeUnknown
	}},
	"cancelled": {context.Canceled, func(call func() error, cancel func()) error {
		cancel()
		return call()
	}},
}

// TestCopyInterrupted has every call that a copy makes fail, one in each copy,
// and calls Copy again.
func TestCopyInterrupted(t *testing.T) {
	for name, interruption := range interruptions {
		t.Run(name, func(t *testing.T) {
			eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
				src := newSrc(t)
				fillWithGaps(t, src, 70)
				for nth := 0; ; nth++ {
					dst := newDst(t)
					if copyInterrupted(t, dst, src, interruption, nth) <= nth {
						break
					}
					copyAll(t, dst, src)
				}
			})
		})
	}
}

// copyInterrupted interrupts a copy at a call, and returns how many calls it
// made. It fails unless what is left is a beginning.
func copyInterrupted(t *testing.T, dst, src relayer.Store, interruption interruption, nth int) (calls int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	through := func(method string, call func() error) error {
		calls++
		if calls-1 == nth {
			return interruption.fail(call, cancel)
		}
		return call()
	}
	err := relayer.Copy(ctx, intercept(dst, through), intercept(src, through))
	var want error
	if nth < calls {
		want = interruption.err
	}
	if !errors.Is(err, want) || errors.Is(err, relayer.ErrDiffers) {
		t.Fatalf("interrupted at call %d of %d: error is %v, want %v", nth, calls, err, want)
	}
	wantBeginning(t, dst, src)
	return calls
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

// strangers are destinations that do not hold the beginning of a source that
// has ids a to e, and where and of whom the error must tell.
var strangers = map[string]struct {
	spoil  func(records []relayer.Record) []relayer.Record
	offset int
	ids    string
}{
	"another document":  {func(r []relayer.Record) []relayer.Record { r[1].Document = []byte("x"); return r[:3] }, 1, "b"},
	"another secret":    {func(r []relayer.Record) []relayer.Record { r[2].Private = []byte("x"); return r[:3] }, 2, "c"},
	"no secret":         {func(r []relayer.Record) []relayer.Record { r[2].Private = nil; return r[:3] }, 2, "c"},
	"another claim":     {func(r []relayer.Record) []relayer.Record { r[0].Claim = "x"; return r }, 0, "a"},
	"no claim":          {func(r []relayer.Record) []relayer.Record { r[4].Claim = ""; return r }, 4, "e"},
	"another revision":  {func(r []relayer.Record) []relayer.Record { r[1].Revision = 77; return r[:2] }, 1, "b"},
	"another id":        {func(r []relayer.Record) []relayer.Record { r[1].ID = "x"; return r[:2] }, 1, "bx"},
	"another order":     {func(r []relayer.Record) []relayer.Record { r[1], r[2] = r[2], r[1]; return r }, 1, "bc"},
	"first one missing": {func(r []relayer.Record) []relayer.Record { return r[1:] }, 0, "ab"},
	"one missing":       {func(r []relayer.Record) []relayer.Record { return slices.Delete(r, 2, 3) }, 2, "cd"},
	"one more": {func(r []relayer.Record) []relayer.Record {
		return append(r, relayer.Record{ID: "x", Revision: 9})
	}, 5, "x"},
	"one more in the middle": {func(r []relayer.Record) []relayer.Record {
		return slices.Insert(r, 3, relayer.Record{ID: "x", Revision: 9})[:4]
	}, 3, "dx"},
}

func TestCopyToAnotherRegistry(t *testing.T) {
	for name, stranger := range strangers {
		t.Run(name, func(t *testing.T) {
			src, dst := memory.New(), memory.New()
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				put(t, src, copySample(id))
			}
			if err := dst.Import(context.Background(), stranger.spoil(listAll(t, src))); err != nil {
				t.Fatal(err)
			}
			before := listAll(t, dst)
			err := relayer.Copy(context.Background(), dst, src)
			wantDiffers(t, err, stranger.offset, strings.Split(stranger.ids, "")...)
			if after := listAll(t, dst); len(after) != len(before) {
				t.Errorf("the destination had %d records and has %d", len(before), len(after))
			}
		})
	}
}

// wantDiffers fails unless the error says that the stores differ, at which
// offset and of which ids, and shows nothing of what they hold.
func wantDiffers(t *testing.T, err error, offset int, ids ...string) {
	t.Helper()
	if !errors.Is(err, relayer.ErrDiffers) {
		t.Fatalf("error is %v, want %v", err, relayer.ErrDiffers)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("at offset %d: ", offset)) {
		t.Errorf("%q does not say offset %d", err, offset)
	}
	for _, id := range ids {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) {
			t.Errorf("%q does not name %q", err, id)
		}
	}
	if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "claim of") || strings.Contains(text, "{") {
		t.Errorf("%q shows what is stored", text)
	}
}

// TestCopyIgnoresRevisionsItCannotKeep: a store that gives its own would
// otherwise never be found to be a copy.
func TestCopyIgnoresRevisionsItCannotKeep(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 40)
	dst := fiveMethods{memory.New()}
	copyAll(t, dst, src)
	if err := relayer.Copy(context.Background(), dst.Store, src); !errors.Is(err, relayer.ErrDiffers) {
		t.Errorf("a copy that keeps revisions, on top of one that did not: error is %v", err)
	}
}

// TestCopyVerifies spoils what a copy has written, behind its back.
func TestCopyVerifies(t *testing.T) {
	spoils := map[string]func(ctx context.Context, store relayer.Store, rec relayer.Record) error{
		"changed": func(ctx context.Context, store relayer.Store, rec relayer.Record) error {
			rec.Private = []byte("x")
			_, err := store.Update(ctx, rec)
			return err
		},
		"lost": func(ctx context.Context, store relayer.Store, rec relayer.Record) error {
			return store.Delete(ctx, rec.ID, rec.Revision)
		},
		"moved": func(ctx context.Context, store relayer.Store, rec relayer.Record) error {
			if err := store.Delete(ctx, rec.ID, rec.Revision); err != nil {
				return err
			}
			_, err := store.Create(ctx, rec)
			return err
		},
		"added": func(ctx context.Context, store relayer.Store, _ relayer.Record) error {
			_, err := store.Create(ctx, relayer.Record{ID: "x"})
			return err
		},
	}
	for name, spoil := range spoils {
		for kind, newDst := range storeKinds {
			for _, at := range []int{0, 7, 14} {
				t.Run(fmt.Sprintf("%s %d to %s", name, at, kind), func(t *testing.T) {
					src, dst := memory.New(), newDst(t)
					fillWithGaps(t, src, 16)
					err := relayer.Copy(context.Background(), dst, src, relayer.WithCopyProgress(func(p relayer.CopyProgress) {
						if p.Stage == relayer.Copying && p.Done == 16 {
							if err := spoil(context.Background(), dst, listAll(t, dst)[at]); err != nil {
								t.Error(err)
							}
						}
					}))
					if !errors.Is(err, relayer.ErrDiffers) {
						t.Errorf("error is %v, want %v", err, relayer.ErrDiffers)
					}
				})
			}
		}
	}
}

// TestCopyOfASourceThatChanges changes the first record of the source, or adds
// one, once the first has been copied and before it is verified.
func TestCopyOfASourceThatChanges(t *testing.T) {
	ctx := context.Background()
	changes := map[string]func(src relayer.Store, first relayer.Record) error{
		"create": func(src relayer.Store, _ relayer.Record) error {
			_, err := src.Create(ctx, copySample("new"))
			return err
		},
		"update": func(src relayer.Store, first relayer.Record) error {
			first.Document = []byte(`{"changed":true}`)
			_, err := src.Update(ctx, first)
			return err
		},
		"delete": func(src relayer.Store, first relayer.Record) error {
			return src.Delete(ctx, first.ID, first.Revision)
		},
		"delete and create": func(src relayer.Store, first relayer.Record) error {
			if err := src.Delete(ctx, first.ID, first.Revision); err != nil {
				return err
			}
			_, err := src.Create(ctx, first)
			return err
		},
	}
	for name, change := range changes {
		for _, moment := range []relayer.CopyProgress{
			{Stage: relayer.Copying, Done: 16, Total: 70},
			{Stage: relayer.Copying, Done: 48, Total: 70},
			{Stage: relayer.Copying, Done: 70, Total: 70},
			{Stage: relayer.Verifying, Done: 0, Total: 70},
		} {
			t.Run(fmt.Sprintf("%s at %s %d", name, moment.Stage, moment.Done), func(t *testing.T) {
				src, dst, changed := memory.New(), memory.New(), false
				fillWithGaps(t, src, 70)
				err := relayer.Copy(ctx, dst, src, relayer.WithCopyProgress(func(p relayer.CopyProgress) {
					if p != moment {
						return
					}
					changed = true
					if err := change(src, listAll(t, src)[0]); err != nil {
						t.Error(err)
					}
				}))
				if !changed || !errors.Is(err, relayer.ErrDiffers) {
					t.Errorf("changed: %t, error is %v, want %v", changed, err, relayer.ErrDiffers)
				}
			})
		}
	}
}

// TestCopyTakesUpAGrownSource: new relayers are the one change after which a
// copy still holds the beginning.
func TestCopyTakesUpAGrownSource(t *testing.T) {
	for kind, newDst := range storeKinds {
		t.Run(kind, func(t *testing.T) {
			src, dst := memory.New(), newDst(t)
			fillWithGaps(t, src, 70)
			err := relayer.Copy(context.Background(), dst, src, relayer.WithCopyProgress(func(p relayer.CopyProgress) {
				if p.Done == 16 {
					put(t, src, copySample(fmt.Sprint("new in ", p.Stage)))
				}
			}))
			if !errors.Is(err, relayer.ErrDiffers) {
				t.Fatalf("error is %v, want %v", err, relayer.ErrDiffers)
			}
			copyAll(t, dst, src)
		})
	}
}

func TestCopyProgress(t *testing.T) {
	eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
		for _, n := range []int{0, 1, 70, 600} {
			src, dst := newSrc(t), newDst(t)
			fillWithGaps(t, src, n)
			var told []relayer.CopyProgress
			copyAll(t, dst, src, relayer.WithCopyProgress(func(p relayer.CopyProgress) { told = append(told, p) }))
			wantProgress(t, told, n)
		}
	})
}

// wantProgress fails unless both stages began with nothing, never went back, and
// ended with everything.
func wantProgress(t *testing.T, told []relayer.CopyProgress, total int) {
	t.Helper()
	verifying := slices.IndexFunc(told, func(p relayer.CopyProgress) bool { return p.Stage == relayer.Verifying })
	if verifying < 1 {
		t.Fatalf("verifying begins at report %d of %d", verifying, len(told))
	}
	for _, stage := range [][]relayer.CopyProgress{told[:verifying], told[verifying:]} {
		if stage[0].Done != 0 || stage[len(stage)-1].Done != total {
			t.Errorf("told from %+v to %+v, of %d", stage[0], stage[len(stage)-1], total)
		}
		for i, p := range stage {
			if p.Total != total || p.Stage != stage[0].Stage || i > 0 && p.Done <= stage[i-1].Done {
				t.Errorf("told %+v after %+v", p, stage[:i])
			}
		}
	}
}

// TestCopyOfLargeDocuments counts the bytes that a copy asks for at a time.
func TestCopyOfLargeDocuments(t *testing.T) {
	src := memory.New()
	for i := range 40 {
		rec := relayer.Record{ID: fmt.Sprint(i), Document: make([]byte, 1<<20), Private: make([]byte, 1<<20)}
		rand.New(rand.NewSource(int64(i))).Read(rec.Document)
		put(t, src, rec)
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
		t.Errorf("80 MiB in %d pages", pages)
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
				done.Go(func() { errs[i] = relayer.Copy(context.Background(), dst, src) })
			}
			done.Wait()
			for _, err := range errs {
				if err != nil && !errors.Is(err, relayer.ErrDiffers) {
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
		"no destination": relayer.Copy(ctx, nil, a),
		"no source":      relayer.Copy(ctx, b, nil),
		"one store":      relayer.Copy(ctx, a, a),
		"zero option":    relayer.Copy(ctx, b, a, relayer.CopyOption{}),
		"no callback":    relayer.Copy(ctx, b, a, relayer.WithCopyProgress(nil)),
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

// TestCopyAtRandom copies between stores that have been through anything, with
// interruptions anywhere.
func TestCopyAtRandom(t *testing.T) {
	for seed := range int64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			kinds := slices.Sorted(maps.Keys(storeKinds))
			src := storeKinds[kinds[random.Intn(len(kinds))]](t)
			dst := storeKinds[kinds[random.Intn(len(kinds))]](t)
			writeAtRandom(t, src, random, random.Intn(400))
			for range random.Intn(4) {
				name := interruptionNames[random.Intn(len(interruptionNames))]
				copyInterrupted(t, dst, src, interruptions[name], random.Intn(30))
				for range random.Intn(3) {
					put(t, src, randomRecord(random))
				}
			}
			copyAll(t, dst, src)
			wantGoesOn(t, dst, listAll(t, src))
		})
	}
}

func randomRecord(random *rand.Rand) relayer.Record {
	rec := relayer.Record{
		ID:       fmt.Sprintf("%016x", random.Uint64()),
		Document: make([]byte, random.Intn(200)),
		Private:  make([]byte, random.Intn(200)),
	}
	if random.Intn(2) == 0 {
		rec.Claim = "claim of " + rec.ID
	}
	random.Read(rec.Document)
	random.Read(rec.Private)
	return rec
}

func writeAtRandom(t *testing.T, store relayer.Store, random *rand.Rand, writes int) {
	t.Helper()
	var stand []relayer.Record
	for range writes {
		at := random.Intn(len(stand) + 1)
		switch what := random.Intn(4); {
		case at == len(stand) || what < 2:
			stand = append(stand, put(t, store, randomRecord(random)))
		case what == 2:
			stand[at].Document = randomRecord(random).Document
			made, err := store.Update(t.Context(), stand[at])
			if err != nil {
				t.Fatal(err)
			}
			stand[at] = made
		default:
			if err := store.Delete(t.Context(), stand[at].ID, stand[at].Revision); err != nil {
				t.Fatal(err)
			}
			stand = slices.Delete(stand, at, at+1)
		}
	}
}
