package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
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
		backup := open(t, backUp(t, store))
		wantSound(t, backup)
		recs, total, err := list(t.Context(), backup, page(0, writes))
		if err != nil || len(recs) != total {
			t.Fatalf("%d records, total %d, error %v", len(recs), total, err)
		}
		for i, rec := range recs {
			if rec.ID != numbered(i).ID {
				t.Fatalf("record %d is %q", i, rec.ID)
			}
		}
		must(t, errorOf(backup.Create(t.Context(), relayer.Record{ID: "new"})))
		_ = backup.Close()
	}
	done.Wait()
}

// backUp returns the path of a new backup.
func backUp(t *testing.T, store *bolt.Store) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	must(t, store.Backup(t.Context(), path))
	return path
}

func TestBackup_PathTaken(t *testing.T) {
	store, _ := openTemp(t)
	path := backUp(t, store)
	before := read(t, path)
	wantError(t, store.Backup(t.Context(), path), fs.ErrExist)
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was changed")
	}
}

// Compact returns the sizes of both files, and keeps the records and the mode.
func TestCompact_KeepsRecords(t *testing.T) {
	store, path := openTemp(t)
	createAll(t, store, 0, 200)
	recs, _, err := list(t.Context(), store, page(0, 200))
	must(t, err)
	deleteAll(t, store, recs[:150])
	must(t, errors.Join(store.Close(), os.Chmod(path, 0o640)))
	sizeBefore := len(read(t, path))
	before, after, err := bolt.Compact(t.Context(), path)
	must(t, err)
	if sizeAfter := len(read(t, path)); before != int64(sizeBefore) || after != int64(sizeAfter) || after >= before {
		t.Errorf("sizes %d and %d, want %d and %d, which is less", before, after, sizeBefore, sizeAfter)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	wantNoOtherFiles(t, path)
	store = open(t, path)
	wantSound(t, store)
	wantGets(t, store, recs[150:])
	if rec, err := store.Create(t.Context(), relayer.Record{ID: "new"}); err != nil || rec.Revision <= recs[199].Revision {
		t.Errorf("the next revision is %d, error %v", rec.Revision, err)
	}
}

// Compact does not replace a file that does not pass the check.
func TestCompact_DamagedFile(t *testing.T) {
	path := flippedFile(t)
	before := read(t, path)
	_, _, err := bolt.Compact(t.Context(), path)
	wantCorrupt(t, "Compact", err, `"id-07"`)
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was changed")
	}
	wantNoOtherFiles(t, path)
}

// Another process removes the new file before it replaces the old one. Compact then fails, and
// the old file is unchanged.
func TestCompact_NewFileRemoved(t *testing.T) {
	path := writeTemp(t, wholeFile(t))
	before := read(t, path)
	if _, _, err := bolt.Compact(removingContext{t.Context(), path + ".tmp*"}, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was changed")
	}
	wantNoOtherFiles(t, path)
}

// removingContext removes the files that match a pattern when it is checked.
type removingContext struct {
	context.Context
	pattern string
}

func (c removingContext) Err() error {
	names, _ := filepath.Glob(c.pattern)
	for _, name := range names {
		_ = os.Remove(name)
	}
	return nil
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
			want, _, err := list(t.Context(), store, page(0, 1000))
			must(t, errors.Join(err, damage(path)))
			backup := open(t, backUp(t, store))
			wantSound(t, backup)
			wantGets(t, backup, want)
			if rec, err := backup.Create(t.Context(), relayer.Record{ID: "new"}); err != nil || rec.Revision != 1001 {
				t.Errorf("the next revision is %d, want 1001; error %v", rec.Revision, err)
			}
		})
	}
}

func TestBackup_DamagedRecord(t *testing.T) {
	store := open(t, flippedFile(t))
	path := filepath.Join(t.TempDir(), "backup.db")
	wantCorrupt(t, "Backup", store.Backup(t.Context(), path), `"id-07"`)
	must(t, store.Delete(t.Context(), "id-07", 0, nil))
	must(t, store.Backup(t.Context(), path))
}

// A backup writes and syncs some megabytes at a time, and ends between them if it is canceled.
func TestBackup_ContextEnds(t *testing.T) {
	store, _ := openTemp(t)
	const megabytes = 20
	for i := range megabytes {
		rec := relayer.Record{ID: numbered(i).ID, Document: make([]byte, 1<<20)}
		must(t, create(t, store, rec)())
	}
	dir := t.TempDir()
	ctx := newEndingContext(t, megabytes/5)
	wantError(t, store.Backup(ctx, filepath.Join(dir, "backup.db")), context.Canceled)
	if ctx.calls != ctx.after {
		t.Errorf("the context was checked %d times, want %d", ctx.calls, ctx.after)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%d files are left, error %v", len(entries), err)
	}
}

// endingContext ends when it is checked for the last of some times.
type endingContext struct {
	context.Context
	end          context.CancelFunc
	calls, after int
}

func newEndingContext(t *testing.T, after int) *endingContext {
	ctx, end := context.WithCancel(t.Context())
	return &endingContext{Context: ctx, end: end, after: after}
}

func (c *endingContext) Err() error {
	if c.calls++; c.calls == c.after {
		c.end()
	}
	return c.Context.Err()
}
