package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
)

func TestCheckFindsDamage(t *testing.T) {
	whole := wholeFile(t)
	key := func(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }
	bucket := func(tx *bbolt.Tx, name string) *bbolt.Bucket { return tx.Bucket([]byte(name)) }
	tests := map[string]func(tx *bbolt.Tx) error{
		"a changed byte in a record": func(tx *bbolt.Tx) error {
			value := bytes.Clone(bucket(tx, "relayers").Get(key(7)))
			value[len(value)-1] ^= 1
			return bucket(tx, "relayers").Put(key(7), value)
		},
		"a longer ID": func(tx *bbolt.Tx) error {
			value := bytes.Clone(bucket(tx, "relayers").Get(key(7)))
			value[13] = 100
			return bucket(tx, "relayers").Put(key(7), value)
		},
		"a changed revision": func(tx *bbolt.Tx) error {
			value := bytes.Clone(bucket(tx, "relayers").Get(key(7)))
			value[12] ^= 1
			return bucket(tx, "relayers").Put(key(7), value)
		},
		"a short record":   func(tx *bbolt.Tx) error { return bucket(tx, "relayers").Put(key(7), []byte{1}) },
		"a missing record": func(tx *bbolt.Tx) error { return bucket(tx, "relayers").Delete(key(7)) },
		"a record too many": func(tx *bbolt.Tx) error {
			return bucket(tx, "relayers").Put(key(300), bucket(tx, "relayers").Get(key(7)))
		},
		"a missing id":     func(tx *bbolt.Tx) error { return bucket(tx, "ids").Delete([]byte("id-0000007")) },
		"an id too many":   func(tx *bbolt.Tx) error { return bucket(tx, "ids").Put([]byte("other"), key(7)) },
		"an id astray":     func(tx *bbolt.Tx) error { return bucket(tx, "ids").Put([]byte("id-0000007"), key(1)) },
		"a missing claim":  func(tx *bbolt.Tx) error { return bucket(tx, "claims").Delete([]byte("claim-0000007")) },
		"a claim too many": func(tx *bbolt.Tx) error { return bucket(tx, "claims").Put([]byte("other"), key(7)) },
		"a claim astray":   func(tx *bbolt.Tx) error { return bucket(tx, "claims").Put([]byte("claim-0000007"), key(1)) },
		"a block astray": func(tx *bbolt.Tx) error {
			value := bucket(tx, "blocks").Get(key(0))
			return errors.Join(bucket(tx, "blocks").Put(key(9), value), bucket(tx, "blocks").Delete(key(0)))
		},
		"an empty block": func(tx *bbolt.Tx) error { return bucket(tx, "blocks").Put(key(9), make([]byte, 128)) },
		"a revision counter gone back": func(tx *bbolt.Tx) error {
			value := bytes.Clone(bucket(tx, "meta").Get([]byte("state")))
			copy(value[16:], key(3))
			return bucket(tx, "meta").Put([]byte("state"), value)
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "relayers.db")
			write(t, path, edited(t, whole, damage))
			store := open(t, path)
			defer store.Close()
			err := store.Check(t.Context())
			if !errors.Is(err, relayer.ErrCorrupt) {
				t.Fatalf("error is %v, want %v", err, relayer.ErrCorrupt)
			}
			_, _, listErr := store.List(t.Context(), 0, 300)
			for _, secret := range []string{"document", "private"} {
				if shown := fmt.Sprint(err, listErr); strings.Contains(shown, secret) {
					t.Errorf("errors %q quote what is stored", shown)
				}
			}
		})
	}
}

// TestCheckOfDamagedHeader: with the newer header gone the file is that of the
// commit before, and looks well. The next commit takes the place of what is
// damaged.
func TestCheckOfDamagedHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	for _, id := range []string{"first", "last"} {
		if err := create(t, store, relayer.Record{ID: id})(); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole := read(t, path)
	flip(t, path, whole, newerHeader(whole)+60, 1)
	store = open(t, path)
	defer store.Close()
	wantIDs(t, store, []string{"first"})
	err := store.Check(t.Context())
	if !errors.Is(err, relayer.ErrCorrupt) || !strings.Contains(err.Error(), "the last commit may be lost") {
		t.Errorf("error is %v", err)
	}
	if err := create(t, store, relayer.Record{ID: "next"})(); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, store, []string{"first", "next"})
	wantSound(t, store)
}

// newerHeader is where the header that counts starts: each ends in the number of
// its transaction and a checksum.
func newerHeader(whole []byte) int {
	second := os.Getpagesize()
	number := func(header int) uint64 { return binary.NativeEndian.Uint64(whole[header+64:]) }
	if number(second) > number(0) {
		return second
	}
	return 0
}

// TestReadsOfDamage reads a file whose record pages were overwritten while it
// was closed. Nothing may bring the process down.
func TestReadsOfDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	content := edited(t, wholeFile(t), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("relayers")).Put(binary.BigEndian.AppendUint64(nil, 7), []byte("nonsense"))
	})
	write(t, path, content)
	store := open(t, path)
	defer store.Close()
	damaged := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, relayer.ErrUnavailable) || !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("%s: error is %v", what, err)
		}
	}
	recs, _, err := store.List(t.Context(), 0, 300)
	damaged("List", err)
	if recs != nil {
		t.Error("List: records came with the error")
	}
	hit := 0
	for i := range 300 {
		rec := numbered(i)
		_, err := store.Get(t.Context(), rec.ID)
		if err == nil {
			continue
		}
		hit++
		damaged("Get", err)
		rec.Revision = 1
		_, err = store.Update(t.Context(), rec)
		damaged("Update", err)
		damaged("Delete", store.Delete(t.Context(), rec.ID, 1))
	}
	if hit != 1 {
		t.Errorf("%d records cannot be read, want 1", hit)
	}
	if _, err := store.Create(t.Context(), relayer.Record{ID: "new"}); err != nil {
		t.Errorf("Create beside a damaged record: %v", err)
	}
}

// TestFileCutWhileOpen takes the pages away under a store that is serving.
func TestFileCutWhileOpen(t *testing.T) {
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

// A fault while the check reads a page is damage too.
func TestCheck_FileTruncatedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	write(t, path, wholeFile(t))
	store := open(t, path)
	defer store.Close()
	whole := read(t, path)
	ctx := newPausing(t)
	checked := make(chan error, 1)
	go func() { checked <- store.Check(ctx) }()
	<-ctx.reached
	if err := os.Truncate(path, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	close(ctx.open)
	if err := <-checked; !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Check: error is %v, want %v", err, relayer.ErrCorrupt)
	}
	write(t, path, whole)
	if err := create(t, store, relayer.Record{ID: "new"})(); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Create after the check: error is %v, want %v", err, relayer.ErrCorrupt)
	}
	wantSound(t, store)
	if err := create(t, store, relayer.Record{ID: "new"})(); err != nil {
		t.Errorf("Create after a check of the restored file: %v", err)
	}
}

func TestCheckOfClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	_ = store.Close()
	if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("Check: error is %v", err)
	}
	if _, err := store.Backup(t.Context(), &bytes.Buffer{}); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("WriteTo: error is %v", err)
	}
}

func TestCheckCancelled(t *testing.T) {
	store, _ := opened(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// TestCheckWhileServing runs checks and backups beside reads and writes.
func TestCheckWhileServing(t *testing.T) {
	store, _ := opened(t)
	var done sync.WaitGroup
	done.Go(func() { createAll(t, store, 0, 1000) })
	done.Go(func() {
		for range 5 {
			wantSound(t, store)
		}
	})
	done.Go(func() {
		for i := range 500 {
			if _, _, err := store.List(t.Context(), i, 10); err != nil {
				t.Error(err)
			}
		}
	})
	done.Wait()
	wantSound(t, store)
}

// TestBackup copies a store that is being written to. Every copy must be a
// sound store that holds a prefix of what was created one by one.
func TestBackup(t *testing.T) {
	store, _ := opened(t)
	const writes = 200
	var done sync.WaitGroup
	done.Go(func() {
		for i := range writes {
			if _, err := store.Create(t.Context(), numbered(i)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 5 {
		var copied bytes.Buffer
		size, err := store.Backup(t.Context(), &copied)
		if err != nil || size != int64(copied.Len()) {
			t.Fatalf("%d bytes, said to be %d, error %v", copied.Len(), size, err)
		}
		path := filepath.Join(t.TempDir(), "backup.db")
		write(t, path, copied.Bytes())
		backup := open(t, path)
		wantSound(t, backup)
		recs, total, err := backup.List(t.Context(), 0, writes)
		if err != nil || len(recs) != total {
			t.Fatalf("%d records, total %d, error %v", len(recs), total, err)
		}
		for i, rec := range recs {
			if rec.ID != numbered(i).ID {
				t.Fatalf("record %d is %q", i, rec.ID)
			}
		}
		if _, err := backup.Create(t.Context(), relayer.Record{ID: "new"}); err != nil {
			t.Error(err)
		}
		_ = backup.Close()
	}
	done.Wait()
}

func TestBackupToFailingWriter(t *testing.T) {
	store, _ := opened(t)
	if _, err := store.Backup(t.Context(), failingWriter{}); err == nil || errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	wantSound(t, store)
}

// TestBackupToPanickingWriter: what the writer does is its owner's business, and
// not the file's.
func TestBackupToPanickingWriter(t *testing.T) {
	store, _ := opened(t)
	func() {
		defer func() {
			if cause := recover(); cause != errDisk {
				t.Errorf("the caller sees a panic of %v, want %v", cause, errDisk)
			}
		}()
		_, err := store.Backup(t.Context(), panickingWriter{})
		t.Errorf("error is %v", err)
	}()
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Error(err)
	}
	wantSound(t, store)
}

type panickingWriter struct{}

func (panickingWriter) Write([]byte) (int, error) { panic(errDisk) }

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errDisk }

// TestCompacted rewrites a file the way docs/store-format.md says.
func TestCompacted(t *testing.T) {
	dir := t.TempDir()
	path, compact := filepath.Join(dir, "relayers.db"), filepath.Join(dir, "compact.db")
	store := open(t, path)
	createAll(t, store, 0, 2000)
	recs, _, err := store.List(t.Context(), 0, 2000)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs[:1900] {
		if err := store.Delete(t.Context(), rec.ID, rec.Revision); err != nil {
			t.Fatal(err)
		}
	}
	wantSound(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	compacted(t, path, compact)
	if before, after := len(read(t, path)), len(read(t, compact)); after > before/2 {
		t.Errorf("%d bytes became %d", before, after)
	}
	store = open(t, compact)
	defer store.Close()
	wantSound(t, store)
	var ids []string
	for _, rec := range recs[1900:] {
		ids = append(ids, rec.ID)
	}
	wantIDs(t, store, ids)
}

func compacted(t *testing.T, from, to string) {
	t.Helper()
	source, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	target, err := bbolt.Open(to, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bbolt.Compact(target, source, 1<<20), source.Close(), target.Close()); err != nil {
		t.Fatal(err)
	}
}
