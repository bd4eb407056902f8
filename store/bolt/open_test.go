package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// Files that are not a usable store are refused, and no byte of them changes.
func TestOpen_RefusedFiles(t *testing.T) {
	whole := wholeFile(t)
	cut := func(size int) []byte { return whole[:size] }
	tests := []struct {
		name    string
		content []byte
		want    error
	}{
		{"empty", nil, relayer.ErrUnknownFormat},
		{"text", []byte("id,name\n1,one\n"), relayer.ErrUnknownFormat},
		{"long text", bytes.Repeat([]byte("id,name\n1,one\n"), 10_000), relayer.ErrUnknownFormat},
		{"zeros", make([]byte, 1<<16), relayer.ErrUnknownFormat},
		{"another database", edited(t, nil, func(tx *bbolt.Tx) error {
			return errorOf(tx.CreateBucket([]byte("things")))
		}), relayer.ErrUnknownFormat},
		{"another database with a meta bucket", edited(t, nil, func(tx *bbolt.Tx) error {
			meta, err := tx.CreateBucket([]byte("meta"))
			return errors.Join(err, meta.Put([]byte("format"), []byte("something else")))
		}), relayer.ErrUnknownFormat},
		{"empty database", edited(t, nil, func(*bbolt.Tx) error { return nil }), relayer.ErrUnknownFormat},
		{"newer format", edited(t, whole, setFormat("relayers\x00\x00\x00\x02")), relayer.ErrNewerFormat},
		{"another format", edited(t, whole, setFormat("relayers and more")), relayer.ErrUnknownFormat},
		{"earlier format", edited(t, whole, setFormat("go-relayer relayers\x00\x00\x00\x04")), relayer.ErrUnknownFormat},
		{"without a bucket", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.DeleteBucket([]byte("relayers"))
		}), relayer.ErrCorrupt},
		{"without its state", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Delete([]byte("state"))
		}), relayer.ErrCorrupt},
		{"with another state", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("state"), make([]byte, 52))
		}), relayer.ErrCorrupt},
		{"with a damaged counter of revisions", edited(t, whole, func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			state := bytes.Clone(meta.Get([]byte("state")))
			state[16] ^= 1
			return meta.Put([]byte("state"), state)
		}), relayer.ErrCorrupt},
		{"cut to a few bytes", cut(10), relayer.ErrUnknownFormat},
		{"cut after the first header", cut(100), relayer.ErrCorrupt},
		{"cut in the second page", cut(5000), relayer.ErrCorrupt},
		{"cut after the first pages", cut(3 * os.Getpagesize()), relayer.ErrCorrupt},
		{"cut at half", cut(usedSize(t, whole) / 2), relayer.ErrCorrupt},
		{"cut by a byte", cut(usedSize(t, whole) - 1), relayer.ErrCorrupt},
		{"with noise after the first pages", withNoise(whole), relayer.ErrCorrupt},
		{"with both headers broken", withoutHeaders(whole), relayer.ErrCorrupt},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := writeTemp(t, test.content)
			store, err := bolt.Open(t.Context(), path)
			if err == nil {
				_ = store.Close()
			}
			wantError(t, err, test.want)
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("error %q does not name the file", err)
			}
			if errors.Is(err, relayer.ErrCorrupt) {
				wantRemedy(t, err)
			}
			const remedy = "export the relayers with that version and apply them to a new file"
			if strings.HasPrefix(test.name, "earlier") && !strings.Contains(fmt.Sprint(err), remedy) {
				t.Errorf("error is %v, want one that says %q", err, remedy)
			}
			if !bytes.Equal(read(t, path), test.content) {
				t.Error("the file has been changed")
			}
			wantNoOtherFiles(t, path)
		})
	}
}

func setFormat(format string) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte(format)) }
}

// Open with an invalid argument creates no file.
func TestOpen_InvalidArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	valid := bolt.WithHistory(1, time.Hour)
	for name, c := range map[string]struct {
		path   string
		option bolt.Option
		want   string
	}{
		"no path":             {"", valid, "the path is empty"},
		"a name of directory": {"new" + string(filepath.Separator), valid, "directory"},
		"a directory":         {".", valid, relayer.ErrUnknownFormat.Error()},
		"a missing directory": {filepath.Join("missing", "relayers.db"), valid, "no such file"},
		"the zero option":     {"relayers.db", bolt.Option{}, "option is empty"},
		"no logger":           {"relayers.db", bolt.WithLogger(nil), "logger is nil"},
		"a negative history":  {"relayers.db", bolt.WithHistory(-1, time.Hour), "history"},
		"a negative age":      {"relayers.db", bolt.WithHistory(1, -time.Hour), "history"},
	} {
		if _, err := bolt.Open(t.Context(), c.path, c.option); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one that says %q", name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, errorOf(bolt.Open(ctx, "relayers.db")), context.Canceled)
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) > 0 {
		t.Errorf("%v is left behind, error %v", entries, err)
	}
}

func TestOpen_BrokenLink(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relayers.db")
	if err := os.Symlink(filepath.Join(dir, "missing"), path); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if store, err := bolt.Open(t.Context(), path); err == nil {
		_ = store.Close()
		t.Fatal("a link to nothing was opened")
	}
	wantNoOtherFiles(t, path)
}

func TestOpen_NewFile(t *testing.T) {
	_, path := openTemp(t)
	info := mustGet(os.Stat(path))(t)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode is %o, want 600", mode)
	}
	wantNoOtherFiles(t, path)
}

func TestOpen_LockTimeout(t *testing.T) {
	store, path := openTemp(t)
	start := time.Now()
	_, err := bolt.Open(t.Context(), path)
	if !errors.Is(err, bolt.ErrLocked) {
		t.Fatalf("error is %v, want %v", err, bolt.ErrLocked)
	}
	for _, part := range []string{path, "another process, or another Store of this process, has it open"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if waited := time.Since(start); waited < 900*time.Millisecond {
		t.Errorf("gave up after %v", waited)
	}
	must(t, errorOf(store.Create(t.Context(), relayer.Record{ID: "one"})))
}

// Stores that open a missing file at the same time all get the same file, one after the
// other.
func TestOpen_ConcurrentFirstOpens(t *testing.T) {
	for round := range 5 {
		path := filepath.Join(t.TempDir(), "relayers.db")
		const openers = 8
		var done sync.WaitGroup
		for i := range openers {
			done.Go(func() {
				store, err := bolt.Open(t.Context(), path)
				for errors.Is(err, bolt.ErrLocked) {
					store, err = bolt.Open(t.Context(), path)
				}
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				if _, err := store.Create(t.Context(), relayer.Record{ID: fmt.Sprint(i)}); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				if err := store.Close(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		done.Wait()
		store := open(t, path)
		if _, total, err := list(t.Context(), store, page(0, 0)); err != nil || total != openers {
			t.Errorf("round %d: %d of %d records, error %v", round, total, openers, err)
		}
		_ = store.Close()
		wantNoOtherFiles(t, path)
	}
}

func usedSize(t *testing.T, content []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sized.db")
	write(t, path, content)
	db := mustGet(bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true}))(t)
	defer func() { _ = db.Close() }()
	size := 0
	err := db.View(func(tx *bbolt.Tx) error {
		size = int(tx.Size())
		return nil
	})
	must(t, err)
	return size
}

func withNoise(content []byte) []byte {
	content = bytes.Clone(content)
	for i := 2 * os.Getpagesize(); i < len(content); i++ {
		content[i] = byte(i * 7)
	}
	return content
}

func withoutHeaders(content []byte) []byte {
	content = bytes.Clone(content)
	content[40] ^= 0xff
	content[os.Getpagesize()+40] ^= 0xff
	return content
}

// Open and a backup to any name in the directory remove what crashed processes have left of the
// files of the store, and nothing else.
func TestStore_RemovesOldTempFiles(t *testing.T) {
	const temporary = "relayers.db.unfinished-123 relayers.db.unfinished-4567890"
	const kept = "other.db.unfinished-123 relayers.db.tmp20260101 relayers.db.unfinished-notes relayers.db.unfinished-7"
	store, path := openTemp(t)
	for name, use := range map[string]func(dir string) error{
		"relayers.db": func(dir string) error { return open(t, filepath.Join(dir, "relayers.db")).Close() },
		"2026.db":     func(dir string) error { return store.Backup(t.Context(), filepath.Join(dir, "2026.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, old := t.TempDir(), time.Now().Add(-time.Hour)
			for _, other := range strings.Fields(temporary + " " + kept) {
				file := filepath.Join(dir, other)
				write(t, file, []byte("temporary"))
				if !strings.HasSuffix(other, "-7") { // which can still be written
					must(t, os.Chtimes(file, old, old))
				}
			}
			must(t, use(dir))
			var names []string
			entries, err := os.ReadDir(dir)
			for _, entry := range entries {
				names = append(names, entry.Name())
			}
			want := append(strings.Fields(kept), name)
			slices.Sort(want)
			if err != nil || !slices.Equal(names, want) {
				t.Errorf("the directory has %v, want %v; error %v", names, want, err)
			}
		})
	}
	wantNoOtherFiles(t, path)
}

func TestOpen_ContextEndsWhileWaitingForLock(t *testing.T) {
	_, path := openTemp(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantError(t, errorOf(bolt.Open(ctx, path)), context.DeadlineExceeded)
}

// Files of this version must stay readable: a change of these texts needs another version.
func TestFormat_Entries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which it is 2000
		store, path := openTemp(t)
		rec := relayer.Record{ID: "a", Claim: "c", Document: []byte(`{"id":"a"}`), Private: []byte(`{}`), Terms: []string{"k=v", "x"}, Text: "t", Note: []byte("nn")}
		created := mustGet(store.Create(t.Context(), rec))(t)
		created.Terms = []string{"x"}
		mustGet(store.Update(t.Context(), created))(t)
		must(t, store.Close())
		var got []string
		edited(t, read(t, path), func(tx *bbolt.Tx) error {
			add := func(key, value []byte) error {
				got = append(got, fmt.Sprintf("%x %x", key, value))
				return nil
			}
			return errors.Join(tx.Bucket([]byte("relayers")).ForEach(add), tx.Bucket([]byte("history")).ForEach(add))
		})
		want := []string{
			"0000000000000001613beae0b5 016800a1f6000000000000000201010001000200010000000a6163746e6e7b226964223a2261227d7b7d78",
			"0000000000000001613beae0b5 01112c010f000000000000000101010001000200050000000a6163746e6e7b226964223a2261227d00386d438000006b3d760078",
			"0000000000000002610f0d482c 01fb7840f7000000000000000101010001000200010000000a6163746e6e7b226964223a2261227d01386d43800001746b3d76007878",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the entries are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

func writeTemp(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayers.db")
	write(t, path, content)
	return path
}

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
	remove := func(names []string) { _ = os.Remove(names[0]) }
	if _, _, err := bolt.Compact(tempContext{t.Context(), path, remove}, path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want %v", err, fs.ErrNotExist)
	}
	if !bytes.Equal(read(t, path), before) {
		t.Error("the file was changed")
	}
	wantNoOtherFiles(t, path)
}

// tempContext calls found with the temporary files of a path when it is checked.
type tempContext struct {
	context.Context
	path  string
	found func(names []string)
}

func (c tempContext) Err() error {
	if names, _ := filepath.Glob(c.path + ".unfinished-*"); len(names) > 0 {
		c.found(names)
	}
	return nil
}

// The history cannot be read when it is copied: it would be lost with the old file.
func TestCompact_HistoryUnreadable(t *testing.T) {
	store, path := openTemp(t)
	createAll(t, store, 0, 1000)
	must(t, store.Close())
	whole := read(t, path)
	damage := sync.OnceFunc(func() { overwrite(t, path, int64(historyPages(t, whole)[1]), make([]byte, 100)) })
	if _, _, err := bolt.Compact(tempContext{t.Context(), path, func([]string) { damage() }}, path); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("error %v, want %v", err, relayer.ErrCorrupt)
	}
	if got := read(t, path); len(got) != len(whole) {
		t.Error("the file was replaced")
	}
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
