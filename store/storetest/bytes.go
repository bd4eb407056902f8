package storetest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/go-relayer/relayer"
)

func bytesNotAliased(t *testing.T, store relayer.Store) {
	want := sample("one")
	given := sample("one")
	made := mustCreate(t, store, given)
	want.Revision = made.Revision
	scribble(given)
	wantSame(t, "Get after the caller changed what it gave to Create", mustGet(t, store, "one"), want)
	scribble(made)
	wantSame(t, "Get after a change to what Create returned", mustGet(t, store, "one"), want)
	scribble(mustGet(t, store, "one"))
	wantSame(t, "Get after a change to what Get returned", mustGet(t, store, "one"), want)
	page, _ := mustList(t, store, 0, 10)
	scribble(page[0])
	wantPage(t, store, 0, 10, []relayer.Record{want})

	given = sample("one")
	given.Revision = want.Revision
	made = mustUpdate(t, store, given)
	want.Revision = made.Revision
	scribble(given)
	scribble(made)
	wantSame(t, "Get after a change to what Update took and returned", mustGet(t, store, "one"), want)
}

// bytesDoNotOverlap appends to the parts of returned records. The other parts must not
// change, even if they share one allocation.
func bytesDoNotOverlap(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 3)
	page, _ := mustList(t, store, 0, 10)
	for i := range page {
		_ = append(page[i].Document, "overrun"...)
		_ = append(page[i].Private, "overrun"...)
	}
	for i := range page {
		wantSame(t, "List after appends", page[i], all[i])
	}
	one := mustGet(t, store, all[0].ID)
	_ = append(one.Document, "overrun"...)
	wantSame(t, "Get after an append", one, all[0])
}

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

func anyBytes(t *testing.T, store relayer.Store) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := mustCreate(t, store, relayer.Record{ID: "one", Document: every, Private: bytes.Repeat([]byte{0}, 100)})
	wantSame(t, "Get", mustGet(t, store, "one"), want)
}

func scribble(rec relayer.Record) {
	for i := range rec.Document {
		rec.Document[i] = '#'
	}
	for i := range rec.Private {
		rec.Private[i] = '#'
	}
}
