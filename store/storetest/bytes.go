package storetest

import (
	"math/rand/v2"
	"testing"

	"github.com/go-relayer/relayer"
)

func largeDocuments(t *testing.T, store relayer.Store) {
	random := rand.NewChaCha8([32]byte{1})
	var all []relayer.Record
	for i, size := range []int{4095, 4096, 4097, 65536, 1 << 20} {
		rec := relayer.Record{ID: numbered(i), Document: make([]byte, size), Private: make([]byte, size)}
		_, _ = random.Read(rec.Document)
		_, _ = random.Read(rec.Private)
		all = append(all, mustCreate(t, store, rec))
	}
	wantPage(t, store, 0, 10, all)
	last := all[len(all)-1]
	last.Document, last.Private = all[0].Document, last.Document
	last = mustUpdate(t, store, last)
	wantSame(t, "Get", mustGet(t, store, last.ID), last)
	mustDelete(t, store, last)
	wantPage(t, store, 0, 10, all[:len(all)-1])
}

// emptyDocuments permits a store to return nil for empty, and empty for nil.
func emptyDocuments(t *testing.T, store relayer.Store) {
	some := []byte("{}")
	var all []relayer.Record
	for i, rec := range []relayer.Record{
		{}, {Document: []byte{}}, {Private: []byte{}}, {Document: some}, {Private: some},
		{Document: some, Private: []byte{}}, {Document: []byte{}, Private: some},
	} {
		rec.ID = numbered(i)
		all = append(all, mustCreate(t, store, rec))
	}
	for _, want := range all {
		wantSame(t, "Get", mustGet(t, store, want.ID), want)
	}
	wantPage(t, store, 0, 10, all)
}
