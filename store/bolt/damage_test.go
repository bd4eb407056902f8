package bolt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

const damageRecords = 1000

// damagePages opens a compact file, in which no page is free, and calls damage
// with the store and the position of a page, for the first and then every so many of
// the pages of a kind that have a text in them.
func damagePages(t *testing.T, kind uint16, text string, every int, damage func(store *bolt.Store, path string, whole []byte, at int)) {
	t.Helper()
	grown, path := filepath.Join(t.TempDir(), "grown.db"), filepath.Join(t.TempDir(), "whole.db")
	write(t, grown, corruptibleFile(t))
	compact(t, grown, path)
	whole := read(t, path)
	size := os.Getpagesize()
	pages := 0
	for at := 2 * size; at+size <= len(whole); at += size {
		if binary.NativeEndian.Uint16(whole[at+8:]) != kind || !containsText(whole[at:at+size], text) {
			continue
		}
		if pages++; (pages-1)%every != 0 {
			continue
		}
		write(t, path, whole)
		store := open(t, path)
		damage(store, path, whole, at)
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	if pages == 0 {
		t.Fatal("the file has no such page")
	}
}

func containsText(page []byte, text string) bool {
	for at := 0; at+len(text) <= len(page); at++ {
		if string(page[at:at+len(text)]) == text {
			return true
		}
	}
	return false
}

// The engine frees as many pages as a page says that it has. One more is a page of
// another part of the tree.
func TestWrite_DamagedOverflow(t *testing.T) {
	damagePages(t, 2, `"}{}`, 30, // a document and a private part, which the history does not have
		func(store *bolt.Store, path string, whole []byte, at int) {
			first, _, err := list(t.Context(), store, page(0, damageRecords))
			if err != nil {
				t.Fatal(err)
			}
			flipBits(t, path, whole, at+12, 1)
			refused := 0
			for _, rec := range first {
				if _, err := store.Update(t.Context(), rec); errors.Is(err, relayer.ErrCorrupt) {
					refused++
				} else if err != nil {
					t.Fatalf("Update: %v", err)
				}
			}
			if refused == 0 {
				t.Error("every record of the damaged page was rewritten")
			}
			if after, _, err := list(t.Context(), store, page(0, damageRecords)); err == nil && len(after) != len(first) {
				t.Errorf("%d records of %d are left", len(after), len(first))
			}
		})
}

// The root pages of the buckets are read again before every write.
func TestWrite_DamagedRootOverflow(t *testing.T) {
	refused := 0
	damagePages(t, 1, "", 1, func(store *bolt.Store, path string, whole []byte, at int) {
		flipBits(t, path, whole, at+14, 0x80)
		_, err := store.Create(t.Context(), relayer.Record{ID: "id-0000500-new"})
		if errors.Is(err, relayer.ErrCorrupt) {
			refused++
		} else if err != nil {
			t.Errorf("Create: %v", err)
		}
	})
	if refused < 2 { // the root and the last branch below it
		t.Errorf("%d damaged branches refused a create, want at least 2", refused)
	}
}

// A page with another count hides or invents entries.
func TestRead_DamagedCount(t *testing.T) {
	damagePages(t, 2, "", 10, func(store *bolt.Store, path string, whole []byte, at int) {
		for bit := range 16 {
			flipBits(t, path, whole, at+10+bit/8, 1<<(bit%8))
			recs, total, err := list(t.Context(), store, page(0, damageRecords))
			if err == nil && (len(recs) != damageRecords || total != damageRecords) {
				t.Errorf("bit %d: List returns %d of %d records, total %d", bit, len(recs), damageRecords, total)
			}
			for i := range damageRecords {
				if _, err := store.Get(t.Context(), versionedRecord(i, 0).ID); errors.Is(err, relayer.ErrNotFound) {
					t.Errorf("bit %d: Get(%d): %v", bit, i, err)
					break
				}
			}
			flipBits(t, path, whole, at+10+bit/8, 0)
		}
	})
}

// A commit of unknown outcome is reported to watchers when its recovery succeeds, and not
// as a gap.
func TestWatch_UnknownOutcome(t *testing.T) {
	store, _, repair := failedRecovery(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changes := store.Watch(ctx, "")
	if _, err := store.Get(ctx, "unknown"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("before the recovery: error is %v, want %v", err, relayer.ErrNotFound)
	}
	repair()
	if err := store.Ready(ctx); err != nil {
		t.Errorf("Ready: %v", err)
	}
	if _, err := store.Get(ctx, "unknown"); err != nil {
		t.Errorf("after the recovery: %v", err)
	}
	for change, err := range changes {
		if change.Kind == relayer.ChangeHeartbeat {
			continue
		}
		if err != nil || change.Record.ID != "unknown" || change.Record.Revision != 2 {
			t.Errorf("change of %q at %d, error %v", change.Record.ID, change.Record.Revision, err)
		}
		break
	}
}

// Close does not wait for a backup. The backup completes if it has read the history.
func TestClose_BackupRunning(t *testing.T) {
	t.Run("after the history", func(t *testing.T) { closeInBackup(t, 10, nil) })
	t.Run("within the history", func(t *testing.T) { closeInBackup(t, 600, relayer.ErrUnavailable) }) // it is read in steps
}

func closeInBackup(t *testing.T, changes int, want error) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	createAll(t, store, 0, changes)
	paused := newPausingContext(t)
	copied := make(chan error, 1)
	go func() { copied <- store.Backup(paused, path+".copy") }()
	<-paused.reached
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if err := open(t, path, bolt.WithLockTimeout(0)).Close(); err != nil {
		t.Error(err)
	}
	close(paused.open)
	if err := <-copied; !errors.Is(err, want) {
		t.Errorf("Backup: error is %v, want %v", err, want)
	}
	if want != nil {
		wantNoOtherFiles(t, path)
		return
	}
	if err := open(t, path+".copy").Close(); err != nil {
		t.Error(err)
	}
}
