package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// flippedFile returns a file of 50 records, of which record 7 is damaged: one digit of an
// amount in its document.
func flippedFile(t *testing.T) string {
	t.Helper()
	store, path := openTemp(t)
	for i := range 50 {
		rec := relayer.Record{ID: fmt.Sprintf("id-%02d", i), Document: fmt.Appendf(nil, `{"gas_price_cap":10000000%02d}`, i)}
		must(t, errorOf(store.Create(t.Context(), rec)))
	}
	must(t, store.Close())
	// Pages that were freed hold older copies of the record.
	content := read(t, path)
	for at := range content {
		if bytes.HasPrefix(content[at:], []byte(`:1000000007}`)) {
			overwrite(t, path, int64(at+1), []byte{'3'})
		}
	}
	return path
}

// A record is not known by an ID that no checksum confirms: the file is refused.
func TestChecksum_DamagedID(t *testing.T) {
	whole := wholeFile(t)
	for name, damaged := range map[string]func(key, value []byte){
		"in the key and the document": func(key, value []byte) { key[8+9] ^= 1; value[len(value)-1] ^= 1 },
		"in the key and the value":    func(key, value []byte) { key[8+9] ^= 1; value[25+9] ^= 1 },
		"in the checksums":            func(key, value []byte) { key[len(key)-1] ^= 1; value[1] ^= 1 },
	} {
		path := writeTemp(t, edited(t, whole, func(tx *bbolt.Tx) error {
			records := tx.Bucket([]byte("relayers"))
			key, value := keyOf(7), bytes.Clone(records.Get(keyOf(7)))
			damaged(key, value)
			return errors.Join(records.Delete(keyOf(7)), records.Put(key, value))
		}))
		store, err := bolt.Open(t.Context(), path)
		if err == nil {
			_ = store.Close()
		}
		wantCorrupt(t, name, err, "a record has no ID")
	}
}

// If one part of a record is damaged, its ID is known, and a delete removes it.
func TestChecksum_EveryByteOfRecord(t *testing.T) {
	t.Parallel()
	whole := wholeFile(t)
	key := keyOf(7)
	var size int
	edited(t, whole, func(tx *bbolt.Tx) error {
		size = len(key) + len(tx.Bucket([]byte("relayers")).Get(key))
		return nil
	})
	for at := 8; at < size; at += 1 + at/60 {
		path := filepath.Join(t.TempDir(), "relayers.db")
		write(t, path, edited(t, whole, func(tx *bbolt.Tx) error {
			records := tx.Bucket([]byte("relayers"))
			entry := append(bytes.Clone(key), records.Get(key)...)
			entry[at] ^= 1
			return errors.Join(records.Delete(key), records.Put(entry[:len(key)], entry[len(key):]))
		}))
		store := open(t, path)
		_, err := store.Get(t.Context(), "id-0000007")
		wantCorrupt(t, fmt.Sprint("Get with byte ", at), err, `"id-0000007"`)
		if err := store.Delete(t.Context(), "id-0000007", 0, nil); err != nil {
			t.Errorf("byte %d: Delete: %v", at, err)
		}
		wantSound(t, store)
		must(t, store.Close())
		store = open(t, path)
		wantSound(t, store)
		if _, total, err := list(t.Context(), store, page(0, 300)); err != nil || total != 299 {
			t.Errorf("byte %d: total is %d, error %v", at, total, err)
		}
		_ = store.Close()
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
	result := inBackground(create(t, store, relayer.Record{ID: "new"}))
	<-committed
	wantError(t, errorOf(store.Get(t.Context(), "new")), relayer.ErrNotFound) // before the commit returned
	close(synced)
	must(t, <-result)
	must(t, errorOf(store.Get(t.Context(), "new")))
}

// A record was overwritten while the file was closed.
func TestRead_DamagedRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	content := edited(t, wholeFile(t), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("relayers")).Put(keyOf(7), []byte("nonsense"))
	})
	write(t, path, content)
	store := open(t, path)
	wantDamaged := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, relayer.ErrUnavailable) || !errors.Is(err, relayer.ErrCorrupt) {
			t.Fatalf("%s: error is %v", what, err)
		}
		wantRemedy(t, err)
	}
	recs, _, err := list(t.Context(), store, page(0, 300))
	wantDamaged("List", err)
	if len(recs) != 7 || recs[6].ID != numbered(6).ID {
		t.Errorf("List: %d records came with the error, want the 7 before the damaged one", len(recs))
	}
	if damaged, ok := errors.AsType[*relayer.CorruptError](err); !ok || damaged.ID != numbered(7).ID || damaged.Sequence != 8 {
		t.Errorf("List: error is %+v, want the ID and the sequence", damaged)
	}
	after := page(0, 300)
	after.After = 8
	if recs, _, err := list(t.Context(), store, after); err != nil || len(recs) != 292 {
		t.Errorf("List after the damaged record: %d records, error %v", len(recs), err)
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
	}
	if damagedRecords != 1 {
		t.Errorf("%d records cannot be read, want 1", damagedRecords)
	}
	wantCorrupt(t, "Check", store.Check(t.Context()), `"id-0000007"`)
	_, _, err = list(t.Context(), store, relayer.StoreQuery{Terms: [][]string{{"any"}}, Limit: 300})
	wantDamaged("List of a term", err)
	other := numbered(8)
	other.Revision = 9
	_, updateErr := store.Update(t.Context(), other)
	// Next to a damaged record.
	must(t, errors.Join(updateErr, create(t, store, relayer.Record{ID: "new"})(), store.Ready(t.Context())))
}

// The file is truncated while the store is open: reads go on from memory.
func TestRead_FileTruncated(t *testing.T) {
	path := writeTemp(t, wholeFile(t))
	store := open(t, path)
	must(t, os.Truncate(path, int64(2*os.Getpagesize())))
	must(t, errorOf(store.Get(t.Context(), numbered(1).ID)))
	if recs, _, err := list(t.Context(), store, page(0, 300)); err != nil || len(recs) != 300 {
		t.Errorf("List: %d records, error %v", len(recs), err)
	}
	for call, err := range map[string]error{"Ready": store.Ready(t.Context()), "Check": store.Check(t.Context())} {
		if !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("%s: error is %v", call, err)
		}
	}
	for range 2 {
		if err := create(t, store, relayer.Record{ID: "new"})(); !errors.Is(err, relayer.ErrUnavailable) || !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("Create: error is %v", err)
		}
	}
	wantError(t, store.Ready(t.Context()), relayer.ErrUnavailable)
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
