package storetest

import (
	"context"
	"io"
	"testing"

	"github.com/go-relayer/relayer"
)

func cancelledContext(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 2)
	done := cancelled(t)
	rec, err := store.Create(done, sample("new"))
	wantError(t, "Create", rec, err, context.Canceled)
	change := all[0]
	change.Document = []byte(`{"changed":true}`)
	rec, err = store.Update(done, change)
	wantError(t, "Update", rec, err, context.Canceled)
	err = store.Delete(done, all[1].ID, all[1].Revision)
	wantError(t, "Delete", relayer.Record{}, err, context.Canceled)
	wantNoDocuments(done, t, store, all[0].ID, context.Canceled)
	wantAbsent(t, store, "new")
	wantPage(t, store, 0, 10, all)
	mustCreate(t, store, sample("new"))
}

func useAfterClose(t *testing.T, store relayer.Store) {
	closer, ok := store.(io.Closer)
	if !ok {
		t.Skip("the store has no Close")
	}
	one := mustCreate(t, store, sample("one"))
	if err := closer.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	rec, err := store.Create(t.Context(), sample("two"))
	wantError(t, "Create", rec, err, relayer.ErrUnavailable)
	rec, err = store.Get(t.Context(), "one")
	wantError(t, "Get", rec, err, relayer.ErrUnavailable)
	rec, err = store.Update(t.Context(), one)
	wantError(t, "Update", rec, err, relayer.ErrUnavailable)
	err = store.Delete(t.Context(), one.ID, one.Revision)
	wantError(t, "Delete", relayer.Record{}, err, relayer.ErrUnavailable)
	_, _, err = store.List(t.Context(), 0, 10)
	wantError(t, "List", relayer.Record{}, err, relayer.ErrUnavailable)
	wantNoDocuments(t.Context(), t, store, one.ID, relayer.ErrUnavailable)
	if err := closer.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
}
