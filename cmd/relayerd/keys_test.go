package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// shrinkingStore is a store from which another server deletes the oldest relayer after each
// list.
type shrinkingStore struct{ relayer.Store }

func (s shrinkingStore) List(ctx context.Context, query relayer.StoreQuery) ([]relayer.Record, int, error) {
	records, total, err := s.Store.List(ctx, query)
	oldest, _, listErr := s.Store.List(ctx, relayer.StoreQuery{Limit: 1})
	if err == nil && listErr == nil && query.Limit > 0 {
		err = s.Store.Delete(ctx, oldest[0].ID, oldest[0].Revision)
	}
	return records, total, err
}

// A sealed relayer that moves to another offset while the relayers are read is found.
func TestHasSealed_ConcurrentDeletes(t *testing.T) {
	t.Parallel()
	for _, sealed := range []int{2, sealedPage - 1, sealedPage, 2*sealedPage - 1, 2 * sealedPage} {
		store := memory.New()
		for i := range 2*sealedPage + 1 {
			rec := relayer.Record{ID: fmt.Sprint("r-", i), Document: []byte(`{"id":"r"}`), Private: []byte(`{}`)}
			if i == sealed {
				rec.Private = []byte("\x01sealed")
			}
			if _, err := store.Create(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := hasSealed(t.Context(), shrinkingStore{store}); !found || err != nil {
			t.Errorf("relayer %d is sealed: found %t, error %v", sealed, found, err)
		}
	}
	if found, err := hasSealed(t.Context(), memory.New()); found || err != nil {
		t.Errorf("an empty store: found %t, error %v", found, err)
	}
}
