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
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// pageKinds are the kinds of pages in a file, as a page says itself.
var pageKinds = map[string]uint16{"branch": 1, "leaf": 2, "header": 4, "freelist": 16}

// TestCheckOfFlippedBits flips every bit at the front of a page of every kind,
// where a page says how long it is and where its parts are. A file that opens
// must be checked to an end: what is found wrong is an error, and what is not
// found wrong reads as it was written.
func TestCheckOfFlippedBits(t *testing.T) {
	grown, path := filepath.Join(t.TempDir(), "grown.db"), filepath.Join(t.TempDir(), "whole.db")
	write(t, grown, wholeFile(t))
	compacted(t, grown, path) // or the page that is chosen could be a free one
	want := allOf(t, path)
	whole := read(t, path)
	for name, kind := range pageKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := pageOfKind(t, whole, kind)
			path := filepath.Join(t.TempDir(), "flipped.db")
			write(t, path, whole)
			found := 0
			for bit := range 64 * 8 {
				flip(t, path, whole, start+bit/8, 1<<(bit%8))
				if foundOrHarmless(t, path, want) {
					found++
				}
				flip(t, path, whole, start+bit/8, 0)
			}
			if found < 100 {
				t.Errorf("%d flipped bits were found", found)
			}
		})
	}
}

// TestNoWriteToDamagedPages: a page that is said to be followed by two thousand
// million more can keep the engine busy without end once a write gives it up.
func TestNoWriteToDamagedPages(t *testing.T) {
	grown, path := filepath.Join(t.TempDir(), "grown.db"), filepath.Join(t.TempDir(), "whole.db")
	write(t, grown, wholeFile(t))
	compacted(t, grown, path)
	whole := read(t, path)
	records := bytes.Index(whole, numbered(0).Document) / os.Getpagesize() * os.Getpagesize()
	flip(t, path, whole, records+15, 0x80)
	store := open(t, path)
	defer store.Close()
	if err := store.Check(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
		t.Fatalf("Check: error is %v, want %v", err, relayer.ErrCorrupt)
	}
	for range 2 {
		err := create(t, store, relayer.Record{ID: "new"})()
		if !errors.Is(err, relayer.ErrCorrupt) || !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("Create: error is %v", err)
		}
	}
	if _, err := store.Get(t.Context(), numbered(7).ID); err != nil {
		t.Errorf("Get: %v", err)
	}
	flip(t, path, whole, records+15, 0)
	wantSound(t, store)
	if err := create(t, store, relayer.Record{ID: "new"})(); err != nil {
		t.Errorf("Create to sound pages: %v", err)
	}
}

// pageOfKind returns where the last page of a kind starts.
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

// flip puts one byte of a file as it was, but for the bits given.
func flip(t *testing.T, path string, whole []byte, at int, bits byte) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteAt([]byte{whole[at] ^ bits}, int64(at))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// foundOrHarmless says whether the damage was found, and fails where what was
// not found does harm.
func foundOrHarmless(t *testing.T, path string, want []byte) bool {
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
	if err == nil && !bytes.Equal(allOf(t, path), want) {
		t.Error("a changed file passes for sound")
	}
	if err != nil && !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Check: %v", err)
	}
	return err != nil
}

// allOf reads everything, in a form that can be compared.
func allOf(t *testing.T, path string) []byte {
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
