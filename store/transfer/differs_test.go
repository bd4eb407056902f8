package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// mismatches are destinations that do not contain the beginning of a source with the
// IDs a to e, and the offset and IDs that the error must contain.
var mismatches = map[string]struct {
	spoil  func(records []relayer.Record) []relayer.Record
	offset int
	ids    string
}{
	"another document":  {func(r []relayer.Record) []relayer.Record { r[1].Document = []byte("x"); return r[:3] }, 1, "b"},
	"another secret":    {func(r []relayer.Record) []relayer.Record { r[2].Private = []byte("x"); return r[:3] }, 2, "c"},
	"no secret":         {func(r []relayer.Record) []relayer.Record { r[2].Private = nil; return r[:3] }, 2, "c"},
	"another claim":     {func(r []relayer.Record) []relayer.Record { r[0].Claim = "x"; return r }, 0, "a"},
	"no claim":          {func(r []relayer.Record) []relayer.Record { r[4].Claim = ""; return r }, 4, "e"},
	"other terms":       {func(r []relayer.Record) []relayer.Record { r[1].Terms = []string{"x"}; return r[:3] }, 1, "b"},
	"another text":      {func(r []relayer.Record) []relayer.Record { r[1].Text = "x"; return r[:3] }, 1, "b"},
	"another note":      {func(r []relayer.Record) []relayer.Record { r[1].Note = []byte("x"); return r[:3] }, 1, "b"},
	"no terms":          {func(r []relayer.Record) []relayer.Record { r[1].Terms = nil; return r[:3] }, 1, "b"},
	"another revision":  {func(r []relayer.Record) []relayer.Record { r[1].Revision = 77; return r[:2] }, 1, "b"},
	"another ID":        {func(r []relayer.Record) []relayer.Record { r[1].ID = "x"; return r[:2] }, 1, "bx"},
	"another order":     {func(r []relayer.Record) []relayer.Record { r[1], r[2] = r[2], r[1]; return r }, 1, "bc"},
	"first one missing": {func(r []relayer.Record) []relayer.Record { return r[1:] }, 0, "ab"},
	"one missing":       {func(r []relayer.Record) []relayer.Record { return slices.Delete(r, 2, 3) }, 2, "cd"},
	"one more": {func(r []relayer.Record) []relayer.Record {
		return append(r, relayer.Record{ID: "x", Revision: 9})
	}, 5, ""},
	"one more in the middle": {func(r []relayer.Record) []relayer.Record {
		return slices.Insert(r, 3, relayer.Record{ID: "x", Revision: 9})[:4]
	}, 3, "dx"},
}

func TestCopy_DestinationDiffers(t *testing.T) {
	for name, mismatch := range mismatches {
		t.Run(name, func(t *testing.T) {
			src, dst := memory.New(), memory.New()
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				put(t, src, copySample(id))
			}
			must(t, dst.Import(context.Background(), mismatch.spoil(listAll(t, src))))
			before := listAll(t, dst)
			err := transfer.Copy(context.Background(), dst, src)
			wantDiffers(t, err, mismatch.offset, strings.Split(mismatch.ids, "")...)
			if after := listAll(t, dst); len(after) != len(before) {
				t.Errorf("the destination had %d records and has %d", len(before), len(after))
			}
		})
	}
}

// wantDiffers fails unless the error is ErrDiffers with offset and IDs, and quotes
// nothing that is stored.
func wantDiffers(t *testing.T, err error, offset int, ids ...string) {
	t.Helper()
	if !errors.Is(err, transfer.ErrDiffers) {
		t.Fatalf("error is %v, want %v", err, transfer.ErrDiffers)
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("at offset %d: ", offset)) {
		t.Errorf("%q does not say offset %d", err, offset)
	}
	for _, id := range ids {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) {
			t.Errorf("%q does not name %q", err, id)
		}
	}
	if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "claim of") || strings.Contains(text, "text of") || strings.Contains(text, "{") {
		t.Errorf("%q shows what is stored", text)
	}
}

// A store that assigns its own revisions is compared without them.
func TestCopy_RevisionsNotImported(t *testing.T) {
	src := memory.New()
	fillWithGaps(t, src, 40)
	dst := wrapped{memory.New()}
	copyAll(t, dst, src)
	if err := transfer.Copy(context.Background(), dst.Store, src); !errors.Is(err, transfer.ErrDiffers) {
		t.Errorf("a copy that keeps revisions, on top of one that did not: error is %v", err)
	}
}

// TestCopy_VerifyFindsChanges changes what a copy has written before it is verified.
func TestCopy_VerifyFindsChanges(t *testing.T) {
	spoils := map[string]func(ctx context.Context, store relayer.Store, rec relayer.Record) error{
		"changed": func(ctx context.Context, store relayer.Store, rec relayer.Record) error {
			rec.Private = []byte("x")
			return errorOf(store.Update(ctx, rec))
		},
		"lost": func(ctx context.Context, store relayer.Store, rec relayer.Record) error {
			return store.Delete(ctx, rec.ID, rec.Revision, nil)
		},
		"last one lost": func(ctx context.Context, store relayer.Store, _ relayer.Record) error {
			page, err := store.List(ctx, relayer.StoreQuery{Offset: 15, Limit: 1})
			if err != nil || page.Total != 16 {
				return fmt.Errorf("%d records: %w", page.Total, err)
			}
			return store.Delete(ctx, page.Records[0].ID, page.Records[0].Revision, nil)
		},
		"moved": func(ctx context.Context, store relayer.Store, rec relayer.Record) error {
			if err := store.Delete(ctx, rec.ID, rec.Revision, nil); err != nil {
				return err
			}
			return errorOf(store.Create(ctx, rec))
		},
		"added": func(ctx context.Context, store relayer.Store, _ relayer.Record) error {
			return errorOf(store.Create(ctx, relayer.Record{ID: "x"}))
		},
	}
	for name, spoil := range spoils {
		for kind, newDst := range storeKinds {
			for _, at := range []int{0, 7, 14} {
				t.Run(fmt.Sprintf("%s %d to %s", name, at, kind), func(t *testing.T) {
					src, dst := memory.New(), newDst(t)
					fillWithGaps(t, src, 16)
					err := transfer.Copy(context.Background(), dst, beforeList(src, 3, func() {
						if err := spoil(context.Background(), dst, listAll(t, dst)[at]); err != nil {
							t.Error(err)
						}
					}))
					if !errors.Is(err, transfer.ErrDiffers) {
						t.Errorf("error is %v, want %v", err, transfer.ErrDiffers)
					}
					if name == "last one lost" {
						wantDiffers(t, err, 15, listAll(t, src)[15].ID)
					}
				})
			}
		}
	}
}

// TestCopy_SourceChanges changes the first record of the source, or adds one, after the
// first is copied and before it is verified.
func TestCopy_SourceChanges(t *testing.T) {
	ctx := context.Background()
	changes := map[string]func(src relayer.Store, first relayer.Record) error{
		"create": func(src relayer.Store, _ relayer.Record) error {
			return errorOf(src.Create(ctx, copySample("new")))
		},
		"update": func(src relayer.Store, first relayer.Record) error {
			first.Document = []byte(`{"changed":true}`)
			return errorOf(src.Update(ctx, first))
		},
		"delete": func(src relayer.Store, first relayer.Record) error {
			return src.Delete(ctx, first.ID, first.Revision, nil)
		},
		"delete and create": func(src relayer.Store, first relayer.Record) error {
			if err := src.Delete(ctx, first.ID, first.Revision, nil); err != nil {
				return err
			}
			return errorOf(src.Create(ctx, first))
		},
	}
	for name, change := range changes {
		for _, nth := range []int{3, 4, 5} { // the second and third page, and the first one to verify
			t.Run(fmt.Sprintf("%s before list %d", name, nth), func(t *testing.T) {
				src, dst, changed := memory.New(), memory.New(), false
				fillWithGaps(t, src, 250)
				err := transfer.Copy(ctx, dst, beforeList(src, nth, func() {
					changed = true
					if err := change(src, listAll(t, src)[0]); err != nil {
						t.Error(err)
					}
				}))
				if !changed || !errors.Is(err, transfer.ErrDiffers) {
					t.Errorf("changed: %t, error is %v, want %v", changed, err, transfer.ErrDiffers)
				}
			})
		}
	}
}

// A copy can be resumed after changes in the source if the copied relayers are the same. It fails if the
// source does not retain all changes since.
func TestCopy_ResumeWithGrownSource(t *testing.T) {
	for kind, newDst := range storeKinds {
		t.Run(kind, func(t *testing.T) {
			src, dst := memory.New(), newDst(t)
			fillWithGaps(t, src, 250)
			err := transfer.Copy(context.Background(), dst, beforeList(src, 3, func() {
				must(t, errorOf(src.Update(t.Context(), listAll(t, src)[249])))
				put(t, src, copySample("new"))
			}))
			if !errors.Is(err, transfer.ErrDiffers) {
				t.Fatalf("error is %v, want %v", err, transfer.ErrDiffers)
			}
			_, isImporter := dst.(transfer.HistoryImporter)
			for _, deletes := range []int{0, 1, 600} {
				createAndDelete(t, src, deletes)
				err := transfer.Copy(t.Context(), dst, src)
				if errors.Is(err, transfer.ErrDiffers) != (isImporter && deletes == 600) {
					t.Errorf("after %d deletes: error is %v", deletes, err)
				}
				if isImporter && deletes < 600 {
					wantHistory(t, dst, pastOf(t, src))
				}
			}
			wantCopied(t, dst, src)
		})
	}
}

// TestCopy_ConcurrentWriter adds a record to the destination before the second import of a copy.
func TestCopy_ConcurrentWriter(t *testing.T) {
	src, dst, imports := memory.New(), memory.New(), 0
	fillWithGaps(t, src, 120)
	contested := interceptedImporter{intercepted{dst, func(method string, call func() error) error {
		if method != "Import" {
			return call()
		}
		if imports++; imports == 2 {
			foreign := listAll(t, src)[110]
			foreign.Document = []byte(`{"foreign":true}`)
			put(t, dst, foreign)
		}
		return call()
	}}}
	err := transfer.Copy(t.Context(), contested, src)
	wantDiffers(t, err, 100)
	if !errors.Is(err, relayer.ErrExists) {
		t.Errorf("error %v, want ErrExists", err)
	}
}

// pastOf returns the history of a store, oldest first, without the times, which a copy does not keep.
func pastOf(t testing.TB, store relayer.Store) []relayer.RecordChange {
	t.Helper()
	past, err := store.History(t.Context(), relayer.HistoryQuery{Limit: math.MaxInt})
	must(t, err)
	slices.Reverse(past)
	for i := range past {
		past[i].Time = time.Time{}
	}
	return past
}

// wantHistory fails unless the store has exactly these changes in its history.
func wantHistory(t testing.TB, store relayer.Store, want []relayer.RecordChange) {
	t.Helper()
	got := pastOf(t, store)
	if len(got) != len(want) {
		t.Fatalf("the history has %d changes, want %d", len(got), len(want))
	}
	for i := range want {
		if g, w := fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]); g != w || len(got[i].Record.Private) > 0 {
			t.Fatalf("change %d is %s, want %s", i, g, w)
		}
	}
}

// fillHistory makes changes of all kinds, whose last one is a delete, with documents of
// different sizes.
func fillHistory(t testing.TB, store relayer.Store) {
	t.Helper()
	fillWithGaps(t, store, 70)
	for i, rec := range listAll(t, store) {
		rec.Document = bytes.Repeat([]byte("d"), i*100)
		rec.Terms, rec.Text, rec.Note = []string{"changed"}, "changed", []byte(fmt.Sprint("note ", i))
		must(t, errorOf(store.Update(t.Context(), rec)))
	}
	last := put(t, store, copySample("last"))
	must(t, store.Delete(t.Context(), last.ID, last.Revision, []byte("deleted")))
}

func TestCopy_History(t *testing.T) {
	eachPair(t, func(t *testing.T, newDst, newSrc func(testing.TB) relayer.Store) {
		src, dst := newSrc(t), newDst(t)
		fillHistory(t, src)
		copyAll(t, dst, src)
		if _, ok := dst.(transfer.HistoryImporter); !ok {
			return
		}
		past := pastOf(t, src)
		wantHistory(t, dst, past)
		copyAll(t, dst, src)
		wantHistory(t, dst, past)
		made := put(t, dst, copySample("later"))
		if deleted := past[len(past)-1].Record; deleted.ID != "last" || made.Revision <= deleted.Revision {
			t.Errorf("a later write has revision %d, and the last delete %d", made.Revision, deleted.Revision)
		}
	})
}

// createAndDelete creates relayers, and deletes each at once.
func createAndDelete(t testing.TB, store relayer.Store, count int) relayer.Store {
	t.Helper()
	for i := range count {
		made := put(t, store, copySample(fmt.Sprint("own-", i)))
		must(t, store.Delete(t.Context(), made.ID, made.Revision, nil))
	}
	return store
}

// The history of a destination is not the history of the source: its relayers were all deleted, or it has
// other relayers, or only a part of the history and all relayers.
func TestCopy_HistoryOfDestination(t *testing.T) {
	complete, pruned, other, part := memory.New(), memory.New(), memory.New(), memory.New()
	fillHistory(t, complete)
	for i := range 1_100 { // more than the store retains
		put(t, pruned, copySample(fmt.Sprint("r-", i)))
	}
	without := openAt(t, filepath.Join(t.TempDir(), "without.db"), bolt.WithHistory(0, 0))
	path := filepath.Join(t.TempDir(), "deleted.db")
	must(t, createAndDelete(t, openAt(t, path, bolt.WithHistory(0, 0)), 1).(*bolt.Store).Close())
	must(t, other.Import(t.Context(), []relayer.Record{{ID: "own", Revision: 1}}))
	must(t, part.ImportHistory(t.Context(), pastOf(t, complete)[:1]))
	must(t, part.Import(t.Context(), listAll(t, complete)))
	for i, stores := range [][2]relayer.Store{
		{createAndDelete(t, memory.New(), 1), complete}, {createAndDelete(t, memory.New(), 500), complete},
		{createAndDelete(t, memory.New(), 2), pruned}, {createAndDelete(t, memory.New(), 3), without},
		{openAt(t, path), complete}, {other, pruned}, {part, complete},
	} {
		before := pastOf(t, stores[0])
		if err := transfer.Copy(t.Context(), stores[0], stores[1]); !errors.Is(err, transfer.ErrDiffers) {
			t.Errorf("stores %d: error is %v, want ErrDiffers", i, err)
		}
		wantHistory(t, stores[0], before)
	}
}

func TestCopy_HistoryNotRetained(t *testing.T) {
	without := openAt(t, filepath.Join(t.TempDir(), "without.db"), bolt.WithHistory(0, 0))
	fillHistory(t, without)
	dst := memory.New()
	copyAll(t, dst, without)
	wantHistory(t, dst, nil)

	src := memory.New()
	fillHistory(t, src)
	without = openAt(t, filepath.Join(t.TempDir(), "without.db"), bolt.WithHistory(0, 0))
	copyAll(t, without, src)

	copyAll(t, src, without) // the source is the same, and retains its history no longer
}

// TestCopy_DamagedHistory changes a note, which is in the history only.
func TestCopy_DamagedHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	src := openAt(t, path)
	rec := copySample("one")
	for i := range 60 {
		rec.Note = fmt.Appendf(nil, "note <%d>", i)
		if i == 0 {
			rec = put(t, src, rec)
			continue
		}
		var err error
		rec, err = src.Update(t.Context(), rec)
		must(t, err)
	}
	want := slices.DeleteFunc(pastOf(t, src), func(c relayer.RecordChange) bool {
		return strings.Contains("note <0> note <20> note <21>", string(c.Record.Note))
	})
	must(t, src.Close())
	replaceIn(t, path, "note <0>", "Note <0>", "note <20>", "Note <20>", "note <21>", "Note <21>")
	dst := memory.New()
	copyAll(t, dst, openAt(t, path))
	wantHistory(t, dst, want)
}
