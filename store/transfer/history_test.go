package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// pastOf returns the history of a store, oldest first.
func pastOf(t testing.TB, store relayer.Store) []relayer.RecordChange {
	t.Helper()
	past, err := store.History(t.Context(), relayer.HistoryQuery{Limit: math.MaxInt})
	must(t, err)
	slices.Reverse(past)
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

// A destination whose relayers were all deleted has a history that the source does not have.
func TestCopy_HistoryOfDestination(t *testing.T) {
	src := memory.New()
	fillHistory(t, src)
	for _, writes := range []int{1, 500} {
		dst := memory.New()
		for i := range writes {
			made := put(t, dst, copySample(fmt.Sprint("own-", i)))
			must(t, dst.Delete(t.Context(), made.ID, made.Revision, nil))
		}
		before := pastOf(t, dst)
		if err := transfer.Copy(t.Context(), dst, src); !errors.Is(err, transfer.ErrDiffers) {
			t.Errorf("after %d writes: error is %v, want ErrDiffers", writes, err)
		}
		wantHistory(t, dst, before)
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
	copyAll(t, openAt(t, filepath.Join(t.TempDir(), "without.db"), bolt.WithHistory(0, 0)), src)
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
