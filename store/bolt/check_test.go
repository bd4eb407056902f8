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
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

func TestCheck_Damage(t *testing.T) {
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
		"a missing ID":              func(tx *bbolt.Tx) error { return bucket(tx, "ids").Delete([]byte("id-0000007")) },
		"an ID too many":            func(tx *bbolt.Tx) error { return bucket(tx, "ids").Put([]byte("other"), key(7)) },
		"an ID of another record":   func(tx *bbolt.Tx) error { return bucket(tx, "ids").Put([]byte("id-0000007"), key(1)) },
		"a missing claim":           func(tx *bbolt.Tx) error { return bucket(tx, "claims").Delete([]byte("claim-0000007")) },
		"a claim too many":          func(tx *bbolt.Tx) error { return bucket(tx, "claims").Put([]byte("other"), key(7)) },
		"a claim of another record": func(tx *bbolt.Tx) error { return bucket(tx, "claims").Put([]byte("claim-0000007"), key(1)) },
		"a block with another number": func(tx *bbolt.Tx) error {
			value := bucket(tx, "blocks").Get(key(0))
			return errors.Join(bucket(tx, "blocks").Put(key(9), value), bucket(tx, "blocks").Delete(key(0)))
		},
		"an empty block": func(tx *bbolt.Tx) error { return bucket(tx, "blocks").Put(key(9), make([]byte, 128)) },
		"a revision counter that is too low": func(tx *bbolt.Tx) error {
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

// Without the newer header, the file has the state of the commit before. The next commit
// overwrites the damaged header.
func TestCheck_DamagedHeader(t *testing.T) {
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
	flipBits(t, path, whole, newerHeader(whole)+60, 1)
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

// newerHeader returns the position of the current header: each header ends in the
// number of its transaction and a checksum.
func newerHeader(whole []byte) int {
	second := os.Getpagesize()
	number := func(header int) uint64 { return binary.NativeEndian.Uint64(whole[header+64:]) }
	if number(second) > number(0) {
		return second
	}
	return 0
}

// A fault while the check reads a page is damage too.
func TestCheck_FileTruncatedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	write(t, path, wholeFile(t))
	store := open(t, path)
	defer store.Close()
	whole := read(t, path)
	ctx := newPausingContext(t)
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

func TestCheck_ClosedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	_ = store.Close()
	if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("Check: error is %v", err)
	}
	if _, err := store.Backup(t.Context(), &bytes.Buffer{}); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("Backup: error is %v", err)
	}
}

func TestCheck_Canceled(t *testing.T) {
	store, _ := openTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func TestCheck_WhileServing(t *testing.T) {
	store, _ := openTemp(t)
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

func TestCheck_CanceledWhileWaiting(t *testing.T) {
	store, g := openGated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	checked := make(chan error, 1)
	go func() { checked <- store.Check(ctx) }()
	select {
	case err := <-checked:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want %v", err, context.DeadlineExceeded)
		}
	case <-time.After(10 * time.Second):
		t.Error("the check still waits")
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// pageKinds are the kinds of pages, as the headers of the pages have them.
var pageKinds = map[string]uint16{"branch": 1, "leaf": 2, "header": 4, "freelist": 16}

// Every bit at the front of a page of every kind is flipped: there are its length and the
// positions of its parts. A check of a file that opens ends. Either it finds the damage,
// or all records are unchanged.
func TestCheck_FlippedBits(t *testing.T) {
	grown, path := filepath.Join(t.TempDir(), "grown.db"), filepath.Join(t.TempDir(), "whole.db")
	write(t, grown, wholeFile(t))
	compact(t, grown, path) // or the page that is chosen could be a free one
	want := dump(t, path)
	whole := read(t, path)
	for name, kind := range pageKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := pageOfKind(t, whole, kind)
			path := filepath.Join(t.TempDir(), "flipped.db")
			write(t, path, whole)
			found := 0
			for bit := range 64 * 8 {
				flipBits(t, path, whole, start+bit/8, 1<<(bit%8))
				if foundOrUnchanged(t, path, want) {
					found++
				}
				flipBits(t, path, whole, start+bit/8, 0)
			}
			if found < 100 {
				t.Errorf("only %d flipped bits were found", found)
			}
		})
	}
}

// pageOfKind returns the position of the last page of a kind.
func pageOfKind(t *testing.T, content []byte, kind uint16) int {
	t.Helper()
	size := os.Getpagesize()
	for at := usedSize(t, content) - size; at >= 0; at -= size {
		if binary.NativeEndian.Uint16(content[at+8:]) == kind {
			return at
		}
	}
	t.Fatal("no page of that kind")
	return 0
}

// foundOrUnchanged reports whether the damage was found. It fails the test if the damage
// was not found and has changed a record.
func foundOrUnchanged(t *testing.T, path string, want []byte) bool {
	t.Helper()
	store, err := bolt.Open(t.Context(), path)
	if errors.Is(err, relayer.ErrCorrupt) || errors.Is(err, relayer.ErrUnknownFormat) {
		return true
	}
	if err != nil {
		t.Errorf("Open: %v", err)
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = store.Check(ctx)
	_ = store.Close()
	if err == nil && !bytes.Equal(dump(t, path), want) {
		t.Error("the check did not find damage that changed a record")
	}
	if err != nil && !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Check: %v", err)
	}
	return err != nil
}

// dump returns all records, as List and Get return them.
func dump(t *testing.T, path string) []byte {
	t.Helper()
	store := open(t, path)
	defer store.Close()
	recs, total, err := store.List(t.Context(), 0, 1000)
	if err != nil {
		t.Errorf("List: %v", err)
	}
	var all bytes.Buffer
	fmt.Fprintln(&all, total)
	for _, rec := range recs {
		got, err := store.Get(t.Context(), rec.ID)
		if err != nil {
			t.Errorf("Get: %v", err)
		}
		for _, each := range []relayer.Record{rec, got} {
			fmt.Fprintln(&all, each.ID, each.Revision, each.Claim)
			all.Write(each.Document)
			all.Write(each.Private)
		}
	}
	return all.Bytes()
}
