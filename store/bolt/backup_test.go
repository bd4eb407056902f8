package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
)

// Every copy is a sound store that holds a prefix of the records, which one goroutine
// creates one by one.
func TestBackup_WhileWriting(t *testing.T) {
	store, _ := openTemp(t)
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
			t.Fatalf("%d bytes written, returned size %d, error %v", copied.Len(), size, err)
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

func TestBackup_FailingWriter(t *testing.T) {
	store, _ := openTemp(t)
	if _, err := store.Backup(t.Context(), failingWriter{}); err == nil || errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	wantSound(t, store)
}

// A panic of the writer reaches the caller and does not affect the file.
func TestBackup_PanickingWriter(t *testing.T) {
	store, _ := openTemp(t)
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

// The compaction that docs/store-format.md describes.
func TestCompaction_ShrinksFile(t *testing.T) {
	dir := t.TempDir()
	path, compacted := filepath.Join(dir, "relayers.db"), filepath.Join(dir, "compact.db")
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
	compact(t, path, compacted)
	if before, after := len(read(t, path)), len(read(t, compacted)); after > before/2 {
		t.Errorf("%d bytes became %d", before, after)
	}
	store = open(t, compacted)
	defer store.Close()
	wantSound(t, store)
	var ids []string
	for _, rec := range recs[1900:] {
		ids = append(ids, rec.ID)
	}
	wantIDs(t, store, ids)
}

// A backup is written from memory: it is sound whatever happened to the file.
func TestBackup_DamagedFile(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"overwritten": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("noise"), 10_000), 0o600) },
		"truncated":   func(path string) error { return os.Truncate(path, 5000) },
		"removed":     os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			store, path := openTemp(t)
			createAll(t, store, 0, 1000)
			want, _, err := store.List(t.Context(), 0, 1000)
			if err := errors.Join(err, damage(path)); err != nil {
				t.Fatal(err)
			}
			var copied bytes.Buffer
			if _, err := store.Backup(t.Context(), &copied); err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(t.TempDir(), "backup.db")
			write(t, path, copied.Bytes())
			backup := open(t, path)
			defer backup.Close()
			wantSound(t, backup)
			wantGets(t, backup, want)
			if rec, err := backup.Create(t.Context(), relayer.Record{ID: "new"}); err != nil || rec.Revision != 1001 {
				t.Errorf("the next revision is %d, want 1001; error %v", rec.Revision, err)
			}
		})
	}
}

// The writer of the backup is slower than any number of writes.
func TestBackup_SlowWriter(t *testing.T) {
	store, _ := openTemp(t)
	createAll(t, store, 0, 1000)
	slow := pausingWriter{make(chan struct{}, 1), make(chan struct{})}
	copied := make(chan error, 1)
	go func() {
		_, err := store.Backup(t.Context(), slow)
		copied <- err
	}()
	<-slow.reached
	createAll(t, store, 1000, 3000)
	wantSound(t, store)
	close(slow.open)
	if err := <-copied; err != nil {
		t.Error(err)
	}
}

func TestBackup_DamagedRecord(t *testing.T) {
	store := flippedRecord(t)
	_, err := store.Backup(t.Context(), &bytes.Buffer{})
	wantCorrupt(t, "Backup", err, `"id-07"`)
	if err := store.Delete(t.Context(), "id-07", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Backup(t.Context(), &bytes.Buffer{}); err != nil {
		t.Errorf("Backup after the delete: %v", err)
	}
}

func TestBackup_ContextEnds(t *testing.T) {
	store, _ := openTemp(t)
	createAll(t, store, 0, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := store.Backup(ctx, writerFunc(func(part []byte) (int, error) {
		cancel()
		return len(part), nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}
