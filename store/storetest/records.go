package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
)

func createReturnsRecord(t *testing.T, store relayer.Store) {
	want := claiming("one", "claim of one")
	made := mustCreate(t, store, want)
	if made.Revision < 1 {
		t.Fatalf("revision is %d, want at least 1", made.Revision)
	}
	if made.Sequence < 1 {
		t.Fatalf("sequence is %d, want at least 1", made.Sequence)
	}
	want.Revision, want.Sequence = made.Revision, made.Sequence
	wantSame(t, "Create", made, want)
	wantSame(t, "Get", mustGet(t, store, "one"), want)
	wantPage(t, store, 0, 10, []relayer.Record{want})
}

func createTaken(t *testing.T, store relayer.Store) {
	first := mustCreate(t, store, sample("one"))
	second := sample("one")
	second.Document = []byte(`{"another":true}`)
	_, err := store.Create(t.Context(), second)
	wantError(t, "Create", err, relayer.ErrExists)
	wantSame(t, "Get", mustGet(t, store, "one"), first)
	wantPage(t, store, 0, 10, []relayer.Record{first})
}

func createIgnoresRevision(t *testing.T, store relayer.Store) {
	first := mustCreate(t, store, sample("one"))
	second := sample("two")
	second.Revision = 1 << 40
	made := mustCreate(t, store, second)
	if made.Revision == second.Revision {
		t.Fatalf("revision is %d, the one given", made.Revision)
	}
	wantPage(t, store, 0, 10, []relayer.Record{first, made})
}

func getUnknown(t *testing.T, store relayer.Store) {
	wantAbsent(t, store, "one")
	mustCreate(t, store, sample("one"))
	wantAbsent(t, store, "two")
	wantAbsent(t, store, "on")
	wantAbsent(t, store, "onee")
}

func idsAtLimits(t *testing.T, store relayer.Store) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	var all []relayer.Record
	for _, letter := range alphabet {
		all = append(all, mustCreate(t, store, sample(string(letter))))
	}
	all = append(all,
		mustCreate(t, store, sample(alphabet)),
		mustCreate(t, store, sample(strings.Repeat("a", limits.ID))),
		mustCreate(t, store, sample(strings.Repeat("a", limits.ID-1))))
	for _, want := range all {
		wantSame(t, "Get", mustGet(t, store, want.ID), want)
	}
	wantPage(t, store, 0, len(all)+1, all)
}

func updateReplaces(t *testing.T, store relayer.Store) {
	first := mustCreate(t, store, claiming("one", "old"))
	other := mustCreate(t, store, sample("two"))
	change := first
	change.Claim = "new"
	change.Document = []byte(`{"changed":1}`)
	change.Private = []byte(`{"changed":2}`)
	second := mustUpdate(t, store, change)
	if second.Revision <= first.Revision {
		t.Fatalf("revision went from %d to %d", first.Revision, second.Revision)
	}
	change.Revision = second.Revision
	wantSame(t, "Update", second, change)
	wantSame(t, "Get", mustGet(t, store, "one"), change)
	wantSame(t, "Get of another", mustGet(t, store, "two"), other)
}

func updateKeepsPosition(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 5)
	for _, i := range []int{4, 0, 2} {
		all[i].Document = []byte(`{"changed":true}`)
		all[i] = mustUpdate(t, store, all[i])
	}
	wantPage(t, store, 0, 10, all)
}

func updateConflict(t *testing.T, store relayer.Store) {
	first := mustCreate(t, store, sample("one"))
	second := mustUpdate(t, store, first)
	for _, revision := range []uint64{first.Revision, second.Revision + 1, 0} {
		stale := first
		stale.Revision = revision
		stale.Document = []byte(`{"stale":true}`)
		_, err := store.Update(t.Context(), stale)
		wantError(t, fmt.Sprintf("Update at %d", revision), err, relayer.ErrConflict)
	}
	wantSame(t, "Get", mustGet(t, store, "one"), second)
}

func updateUnknown(t *testing.T, store relayer.Store) {
	missing := sample("one")
	missing.Revision = 1
	_, err := store.Update(t.Context(), missing)
	wantError(t, "Update", err, relayer.ErrNotFound)
	wantPage(t, store, 0, 10, nil)
}

func deleteRemoves(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 3)
	mustDelete(t, store, all[1])
	wantAbsent(t, store, all[1].ID)
	wantPage(t, store, 0, 10, []relayer.Record{all[0], all[2]})
	err := store.Delete(t.Context(), all[1].ID, all[1].Revision, deleteNote)
	wantError(t, "second Delete", err, relayer.ErrNotFound)
}

func deleteConflict(t *testing.T, store relayer.Store) {
	first := mustCreate(t, store, sample("one"))
	second := mustUpdate(t, store, first)
	for _, revision := range []uint64{first.Revision, second.Revision + 1, 0} {
		err := store.Delete(t.Context(), "one", revision, deleteNote)
		wantError(t, fmt.Sprintf("Delete at %d", revision), err, relayer.ErrConflict)
	}
	wantSame(t, "Get", mustGet(t, store, "one"), second)
}

func deleteUnknown(t *testing.T, store relayer.Store) {
	for _, id := range []string{"one", "", "NUL\x00", "\xff", strings.Repeat("x", 65), strings.Repeat("x", 1<<16)} {
		wantAbsent(t, store, id)
		err := store.Delete(t.Context(), id, 1, deleteNote)
		wantError(t, fmt.Sprintf("Delete(%.80q)", id), err, relayer.ErrNotFound)
	}
}

func createAfterDelete(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 3)
	mustDelete(t, store, all[0])
	again := mustCreate(t, store, sample(all[0].ID))
	wantPage(t, store, 0, 10, []relayer.Record{all[1], all[2], again})
}

func revisionsNeverReused(t *testing.T, store relayer.Store) {
	last := uint64(0)
	grew := func(what string, rec relayer.Record) {
		t.Helper()
		if rec.Revision <= last {
			t.Fatalf("%s: revision %d after %d", what, rec.Revision, last)
		}
		last = rec.Revision
	}
	for range 5 {
		rec := mustCreate(t, store, sample("one"))
		grew("Create", rec)
		for range 3 {
			rec = mustUpdate(t, store, rec)
			grew("Update", rec)
		}
		mustDelete(t, store, rec)
		err := store.Delete(t.Context(), "one", rec.Revision, deleteNote)
		wantError(t, "Delete of the deleted", err, relayer.ErrNotFound)
	}
}
