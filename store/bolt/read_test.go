package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// flippedRecord opens a store of 50 records and flips one bit of an amount in the
// document of record 7.
func flippedRecord(t *testing.T) *bolt.Store {
	t.Helper()
	store, path := openTemp(t)
	for i := range 50 {
		rec := relayer.Record{ID: fmt.Sprintf("id-%02d", i), Document: fmt.Appendf(nil, `{"gas_price_cap":10000000%02d}`, i)}
		if _, err := store.Create(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	// Pages that were freed hold older copies of the record.
	content := read(t, path)
	for at := range content {
		if bytes.HasPrefix(content[at:], []byte(`:1000000007}`)) {
			overwrite(t, path, int64(at+1), []byte{'3'})
		}
	}
	return store
}

func TestChecksum_DamagedRecordIsNotServed(t *testing.T) {
	store := flippedRecord(t)
	_, err := store.Get(t.Context(), "id-07")
	wantCorrupt(t, "Get", err, `"id-07"`)
	_, _, err = store.AppendDocument(t.Context(), nil, "id-07")
	wantCorrupt(t, "AppendDocument", err, `"id-07"`)
	_, _, err = store.List(t.Context(), 5, 10)
	wantCorrupt(t, "List", err, `"id-07"`)
	_, _, err = store.AppendDocuments(t.Context(), nil, 0, 50)
	wantCorrupt(t, "AppendDocuments", err, `"id-07"`)
	wantCorrupt(t, "Check", store.Check(t.Context()), `"id-07"`)
}

func TestChecksum_DamagedRecordIsNotRewritten(t *testing.T) {
	store := flippedRecord(t)
	_, err := store.Update(t.Context(), relayer.Record{ID: "id-07", Revision: 8, Document: []byte("{}")})
	wantCorrupt(t, "Update", err, `"id-07"`)
	wantCorrupt(t, "Delete", store.Delete(t.Context(), "id-07", 8), `"id-07"`)
	wantCorrupt(t, "Check", store.Check(t.Context()), `"id-07"`)
}

func TestChecksum_OtherRecordsStayUsable(t *testing.T) {
	store := flippedRecord(t)
	for i := range 50 {
		if id := fmt.Sprintf("id-%02d", i); i != 7 {
			if _, err := store.Get(t.Context(), id); err != nil {
				t.Errorf("Get(%s): %v", id, err)
			}
		}
	}
	if recs, total, err := store.List(t.Context(), 8, 42); err != nil || len(recs) != 42 || total != 50 {
		t.Errorf("List returned %d of %d records, error %v", len(recs), total, err)
	}
	if _, err := store.Update(t.Context(), relayer.Record{ID: "id-08", Revision: 9}); err != nil {
		t.Errorf("Update of another record: %v", err)
	}
}

// A read never returns a commit whose sync has not succeeded.
func TestRead_OnlyDurableCommits(t *testing.T) {
	store, _ := openTemp(t)
	committed, synced := make(chan struct{}), make(chan struct{})
	store.InterceptCommits(func(commit func() error) error {
		err := commit()
		close(committed)
		<-synced
		return err
	})
	result := make(chan error, 1)
	go func() { result <- create(t, store, relayer.Record{ID: "new"})() }()
	<-committed
	if _, err := store.Get(t.Context(), "new"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get before the commit returned: error is %v, want %v", err, relayer.ErrNotFound)
	}
	close(synced)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), "new"); err != nil {
		t.Errorf("Get after the commit returned: %v", err)
	}
}

// A record was overwritten while the file was closed.
func TestRead_DamagedRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	content := edited(t, wholeFile(t), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("relayers")).Put(binary.BigEndian.AppendUint64(nil, 7), []byte("nonsense"))
	})
	write(t, path, content)
	store := open(t, path)
	defer store.Close()
	wantDamaged := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, relayer.ErrUnavailable) || !errors.Is(err, relayer.ErrCorrupt) {
			t.Fatalf("%s: error is %v", what, err)
		}
		wantRemedy(t, err)
	}
	recs, _, err := store.List(t.Context(), 0, 300)
	wantDamaged("List", err)
	if recs != nil {
		t.Error("List: records came with the error")
	}
	damagedRecords := 0
	for i := range 300 {
		rec := numbered(i)
		_, err := store.Get(t.Context(), rec.ID)
		if err == nil {
			continue
		}
		damagedRecords++
		wantDamaged("Get", err)
		rec.Revision = 1
		_, err = store.Update(t.Context(), rec)
		wantDamaged("Update", err)
		wantDamaged("Delete", store.Delete(t.Context(), rec.ID, 1))
	}
	if damagedRecords != 1 {
		t.Errorf("%d records cannot be read, want 1", damagedRecords)
	}
	if _, err := store.Create(t.Context(), relayer.Record{ID: "new"}); err != nil {
		t.Errorf("Create next to a damaged record: %v", err)
	}
}

// The file is truncated while the store is open.
func TestRead_FileTruncated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	write(t, path, wholeFile(t))
	store := open(t, path)
	defer store.Close()
	if err := os.Truncate(path, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), numbered(1).ID); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("Get: error is %v", err)
	}
	if _, _, err := store.List(t.Context(), 0, 100); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("List: error is %v", err)
	}
	if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Check: error is %v", err)
	}
	for range 2 {
		if err := create(t, store, relayer.Record{ID: "new"})(); !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("Create: error is %v", err)
		}
	}
}

// Records are created, read and deleted in rounds, so that the same IDs move to other
// pages.
func TestGet_RecreatedRecords(t *testing.T) {
	store, _ := openTemp(t)
	const n = 3000
	for round := range 3 {
		createAll(t, store, 0, n)
		recs, total, err := store.List(t.Context(), 0, n)
		if err != nil || total != n {
			t.Fatalf("round %d: total %d, error %v", round, total, err)
		}
		wantGets(t, store, recs)
		wantGets(t, store, recs)
		deleteAll(t, store, recs)
		for _, rec := range recs {
			if _, err := store.Get(t.Context(), rec.ID); !errors.Is(err, relayer.ErrNotFound) {
				t.Fatalf("round %d: Get of the deleted %s: error %v", round, rec.ID, err)
			}
		}
	}
	wantSound(t, store)
}

func wantGets(t *testing.T, store relayer.Store, recs []relayer.Record) {
	t.Helper()
	for _, want := range recs {
		got, err := store.Get(t.Context(), want.ID)
		if err != nil || got.ID != want.ID || got.Revision != want.Revision {
			t.Fatalf("%s at %d, want %s at %d; error %v", got.ID, got.Revision, want.ID, want.Revision, err)
		}
	}
}

// endingContext ends when its error is asked for the given number of times.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestList_ContextEndsInPage(t *testing.T) {
	store, _ := openTemp(t)
	createAll(t, store, 0, 100)
	for name, list := range map[string]func(ctx context.Context) error{
		"List": func(ctx context.Context) error {
			_, _, err := store.List(ctx, 0, 100)
			return err
		},
		"AppendDocuments": func(ctx context.Context) error {
			_, _, err := store.AppendDocuments(ctx, nil, 0, 100)
			return err
		},
	} {
		if err := list(&endingContext{t.Context(), 1}); err != context.Canceled {
			t.Errorf("%s: error is %v, want %v", name, err, context.Canceled)
		}
	}
}
