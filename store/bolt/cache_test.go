package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

func openWithCache(t *testing.T, limit int) *bolt.Store {
	t.Helper()
	store := open(t, filepath.Join(t.TempDir(), "relayers.db"), bolt.WithDocumentCache(limit))
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Get and List read the file. AppendDocument and AppendDocuments, which use the cache,
// must return the same at any time.
func TestDocumentCache_SameAsFile(t *testing.T) {
	for _, limit := range []int{0, 10_000, 1 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			store := openWithCache(t, limit)
			random := rand.New(rand.NewPCG(1, 2))
			for i := range 300 {
				change(t, store, fmt.Sprintf("id-%d", random.IntN(150)), i)
				for range 3 {
					expectSameDocument(t, store, fmt.Sprintf("id-%d", random.IntN(150)))
					expectSamePage(t, store, random.IntN(100), 1+random.IntN(20))
				}
			}
		})
	}
}

// change creates the record, or updates or deletes it.
func change(t *testing.T, store *bolt.Store, id string, number int) {
	t.Helper()
	rec, err := store.Get(t.Context(), id)
	written := relayer.Record{ID: id, Revision: rec.Revision, Document: fmt.Appendf(nil, "document %d", number), Private: []byte("private")}
	switch {
	case err != nil:
		_, err = store.Create(t.Context(), written)
	case number%3 == 0:
		err = store.Delete(t.Context(), id, rec.Revision)
	default:
		_, err = store.Update(t.Context(), written)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func expectSameDocument(t *testing.T, store *bolt.Store, id string) {
	t.Helper()
	want, wantErr := store.Get(t.Context(), id)
	got, revision, err := store.AppendDocument(t.Context(), nil, id)
	if !bytes.Equal(got, want.Document) || revision != want.Revision || (err == nil) != (wantErr == nil) {
		t.Fatalf("document of %s is %q at %d, error %v; the file has %q at %d, error %v", id, got, revision, err, want.Document, want.Revision, wantErr)
	}
}

func expectSamePage(t *testing.T, store *bolt.Store, offset, limit int) {
	t.Helper()
	recs, wantTotal, err := store.List(t.Context(), offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	documents := make([][]byte, len(recs))
	for i := range recs {
		documents[i] = recs[i].Document
	}
	got, total, err := store.AppendDocuments(t.Context(), nil, offset, limit)
	if want := bytes.Join(documents, []byte(",")); !bytes.Equal(got, want) || total != wantTotal || err != nil {
		t.Fatalf("page from %d is %q of %d, error %v; the file has %q of %d", offset, got, total, err, want, wantTotal)
	}
}

// Readers of the record and of its page fill the cache while a writer updates the record.
func TestDocumentCache_ReadAfterWrite(t *testing.T) {
	store := openWithCache(t, 1<<20)
	createAll(t, store, 0, 40)
	id := numbered(20).ID
	rec, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var acknowledged atomic.Uint64
	end := time.Now().Add(time.Second)
	update := func(number int) {
		rec.Document = fmt.Appendf(nil, "number %d", number)
		if rec, err = store.Update(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		acknowledged.Store(uint64(number))
	}
	update(0)
	var readers sync.WaitGroup
	expectUpdated := func(read func(dst []byte) ([]byte, error)) {
		readers.Go(func() {
			for time.Now().Before(end) {
				least := acknowledged.Load()
				found, err := read(nil)
				if number := numberIn(found); err != nil || number < least {
					t.Errorf("number %d after the write of %d, error %v", number, least, err)
					return
				}
			}
		})
	}
	for range 2 {
		expectUpdated(func(dst []byte) ([]byte, error) {
			document, _, err := store.AppendDocument(t.Context(), dst, id)
			return document, err
		})
		expectUpdated(func(dst []byte) ([]byte, error) {
			page, _, err := store.AppendDocuments(t.Context(), dst, 0, 40)
			return page, err
		})
	}
	for number := 1; time.Now().Before(end); number++ {
		update(number)
	}
	readers.Wait()
}

// numberIn returns the number in one of the documents.
func numberIn(documents []byte) uint64 {
	_, text, _ := bytes.Cut(documents, []byte("number "))
	text, _, _ = bytes.Cut(text, []byte(","))
	number, _ := strconv.ParseUint(string(text), 10, 64)
	return number
}

func TestDocumentCache_Limit(t *testing.T) {
	const limit = 50_000
	store := openWithCache(t, limit)
	createAll(t, store, 0, 500)
	for range 20 {
		for i := range 500 {
			if _, _, err := store.AppendDocument(t.Context(), nil, numbered(i).ID); err != nil {
				t.Fatal(err)
			}
			if size := store.CacheSize(); size > limit {
				t.Fatalf("the cache has %d bytes", size)
			}
		}
	}
	if size := store.CacheSize(); size < limit/2 {
		t.Errorf("the cache has only %d bytes", size)
	}
	recs, _, err := store.List(t.Context(), 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	deleteAll(t, store, recs)
	if size := store.CacheSize(); size != 0 {
		t.Errorf("without records the cache has %d bytes", size)
	}
}

// A document that is larger than the cache does not evict others.
func TestDocumentCache_LargeDocument(t *testing.T) {
	store := openWithCache(t, 50_000)
	createAll(t, store, 0, 10)
	large, err := store.Create(t.Context(), relayer.Record{ID: "large", Document: make([]byte, 60_000)})
	if err != nil {
		t.Fatal(err)
	}
	expectSamePage(t, store, 0, 10)
	before := store.CacheSize()
	expectSameDocument(t, store, large.ID)
	expectSamePage(t, store, 0, 11)
	if size := store.CacheSize(); size != before || before == 0 {
		t.Errorf("the cache has %d bytes, before it had %d", size, before)
	}
}

// The size includes the memory of updated documents until their piece is joined again.
func TestDocumentCache_SizeAfterUpdates(t *testing.T) {
	store := openWithCache(t, 1<<20)
	createAll(t, store, 0, 200)
	listAll := func() {
		if _, _, err := store.AppendDocuments(t.Context(), nil, 0, 200); err != nil {
			t.Fatal(err)
		}
	}
	listAll()
	first := store.CacheSize()
	for range 3 {
		for i := range 200 {
			rec, err := store.Get(t.Context(), numbered(i).ID)
			if err == nil {
				_, err = store.Update(t.Context(), rec)
			}
			if err == nil {
				_, _, err = store.AppendDocument(t.Context(), nil, rec.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if size := store.CacheSize(); size <= first || size > 2*first {
			t.Errorf("after updates the cache has %d bytes, at first %d", size, first)
		}
	}
	if listAll(); store.CacheSize() != first {
		t.Errorf("after updates and a list the cache has %d bytes, at first %d", store.CacheSize(), first)
	}
}

// A document that is cached alone must not take the memory of many.
func TestDocumentCache_ScatteredReads(t *testing.T) {
	const documents = 10
	store := openWithCache(t, 1<<20)
	createAll(t, store, 0, 32*documents)
	size := 0
	for i := range documents {
		document, _, err := store.AppendDocument(t.Context(), nil, numbered(32*i).ID)
		if err != nil {
			t.Fatal(err)
		}
		size += len(document)
	}
	if overhead := (store.CacheSize() - size) / documents; overhead > 1024 {
		t.Errorf("a document needs %d bytes in addition to itself", overhead)
	}
}

func TestDocumentCache_LimitOfPages(t *testing.T) {
	const limit = 50_000
	store := openWithCache(t, limit)
	createAll(t, store, 0, 500)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 2000 {
		expectSamePage(t, store, random.IntN(500), 1+random.IntN(100))
		if size := store.CacheSize(); size > limit || i > 100 && size < limit/4 {
			t.Fatalf("the cache has %d bytes", size)
		}
	}
}

func TestDocumentCache_NegativeLimit(t *testing.T) {
	if store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"), bolt.WithDocumentCache(-1)); err == nil {
		t.Error("a negative limit was accepted")
		_ = store.Close()
	}
}
