package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
)

func canceledContext(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 2)
	done := canceled(t)
	_, err := store.Create(done, sample("new"))
	wantError(t, "Create", err, context.Canceled)
	change := all[0]
	change.Document = []byte(`{"changed":true}`)
	_, err = store.Update(done, change)
	wantError(t, "Update", err, context.Canceled)
	err = store.Delete(done, all[1].ID, all[1].Revision, deleteNote)
	wantError(t, "Delete", err, context.Canceled)
	wantAbsent(t, store, "new")
	wantPage(t, store, 0, 10, all)
	mustCreate(t, store, sample("new"))
}

func useAfterClose(t *testing.T, store relayer.Store) {
	one := mustCreate(t, store, sample("one"))
	closer := mustClose(t, store)
	_, err := store.Create(t.Context(), sample("two"))
	wantError(t, "Create", err, relayer.ErrUnavailable)
	_, err = store.Get(t.Context(), "one")
	wantError(t, "Get", err, relayer.ErrUnavailable)
	_, err = store.Update(t.Context(), one)
	wantError(t, "Update", err, relayer.ErrUnavailable)
	err = store.Delete(t.Context(), one.ID, one.Revision, deleteNote)
	wantError(t, "Delete", err, relayer.ErrUnavailable)
	_, err = store.List(t.Context(), relayer.StoreQuery{Limit: 10})
	wantError(t, "List", err, relayer.ErrUnavailable)
	if _, err = store.History(t.Context(), relayer.HistoryQuery{Limit: 10}); !errors.Is(err, errors.ErrUnsupported) {
		wantError(t, "History", err, relayer.ErrUnavailable)
	}
	if err := closer.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
}

func checkOfUndamaged(t *testing.T, store relayer.Store) {
	checker, ok := store.(transfer.Checker)
	if !ok {
		t.Skip("the store has no Check")
	}
	check := func(what string) {
		t.Helper()
		if err := checker.Check(t.Context()); err != nil {
			t.Fatalf("Check of %s: %v", what, err)
		}
	}
	check("an empty store")
	all := createMany(t, store, 300)
	check("a store that was filled")
	for i := range all {
		if i%3 == 0 {
			mustDelete(t, store, all[i])
			continue
		}
		all[i].Claim = "claim of " + all[i].ID
		all[i] = mustUpdate(t, store, all[i])
	}
	check("a store with gaps")
	if err := checker.Check(canceled(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("Check in a context that has ended: error is %v, want %v", err, context.Canceled)
	}
	mustClose(t, store)
	if err := checker.Check(t.Context()); !errors.Is(err, relayer.ErrUnavailable) {
		t.Fatalf("Check of a closed store: error is %v, want %v", err, relayer.ErrUnavailable)
	}
}
