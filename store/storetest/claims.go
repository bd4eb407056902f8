package storetest

import (
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
)

func claimRejected(t *testing.T, store relayer.Store) {
	holder := mustCreate(t, store, claiming("one", "x"))
	_, err := store.Create(t.Context(), claiming("two", "x"))
	wantError(t, "Create", err, relayer.ErrClaimed)
	wantAbsent(t, store, "two")
	wantPage(t, store, 0, 10, []relayer.Record{holder})
	other := mustCreate(t, store, claiming("two", "X"))
	wantPage(t, store, 0, 10, []relayer.Record{holder, other})
}

func existsBeforeClaimed(t *testing.T, store relayer.Store) {
	mustCreate(t, store, claiming("one", "x"))
	mustCreate(t, store, claiming("two", "y"))
	for _, claim := range []string{"x", "y", "z", ""} {
		_, err := store.Create(t.Context(), claiming("one", claim))
		wantError(t, "Create with claim "+claim, err, relayer.ErrExists)
	}
	mustCreate(t, store, claiming("three", "z"))
}

func conflictBeforeClaimed(t *testing.T, store relayer.Store) {
	one := mustCreate(t, store, claiming("one", "x"))
	mustCreate(t, store, claiming("two", "y"))
	stale := one
	stale.Revision += 100
	stale.Claim = "y"
	_, err := store.Update(t.Context(), stale)
	wantError(t, "Update at another revision", err, relayer.ErrConflict)
	stale.ID = "three"
	_, err = store.Update(t.Context(), stale)
	wantError(t, "Update of an unknown ID", err, relayer.ErrNotFound)
}

func claimMoves(t *testing.T, store relayer.Store) {
	one := mustCreate(t, store, claiming("one", "x"))
	one.Claim = "y"
	one = mustUpdate(t, store, one)
	two := mustCreate(t, store, claiming("two", "x"))
	_, err := store.Create(t.Context(), claiming("three", "y"))
	wantError(t, "Create", err, relayer.ErrClaimed)
	one.Claim = ""
	one = mustUpdate(t, store, one)
	three := mustCreate(t, store, claiming("three", "y"))
	wantPage(t, store, 0, 10, []relayer.Record{one, two, three})
}

func claimKept(t *testing.T, store relayer.Store) {
	one := mustCreate(t, store, claiming("one", "x"))
	for range 3 {
		one = mustUpdate(t, store, one)
	}
	_, err := store.Create(t.Context(), claiming("two", "x"))
	wantError(t, "Create", err, relayer.ErrClaimed)
	mustDelete(t, store, one)
	mustCreate(t, store, claiming("two", "x"))
}

func claimRejectedOnUpdate(t *testing.T, store relayer.Store) {
	one := mustCreate(t, store, claiming("one", "x"))
	two := mustCreate(t, store, claiming("two", "y"))
	change := two
	change.Claim = "x"
	change.Document = []byte(`{"changed":true}`)
	_, err := store.Update(t.Context(), change)
	wantError(t, "Update", err, relayer.ErrClaimed)
	wantPage(t, store, 0, 10, []relayer.Record{one, two})
	_, err = store.Create(t.Context(), claiming("three", "y"))
	wantError(t, "Create with the claim that must still be held", err, relayer.ErrClaimed)
}

func claimAtLimit(t *testing.T, store relayer.Store) {
	longest := strings.Repeat("c", limits.Claim)
	claims := []string{longest, longest[1:], longest[1:] + "d", "\x00", "\xff\xfe", "\x00\x00", " "}
	var all []relayer.Record
	for i, claim := range claims {
		all = append(all, mustCreate(t, store, claiming(numbered(i), claim)))
	}
	wantPage(t, store, 0, 10, all)
	for _, claim := range claims {
		_, err := store.Create(t.Context(), claiming("other", claim))
		wantError(t, "Create", err, relayer.ErrClaimed)
	}
}
