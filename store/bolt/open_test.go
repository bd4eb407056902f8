package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		{"another database", database(t, func(tx *bbolt.Tx) error {
			return errorOf(tx.CreateBucket([]byte("things")))
		}), relayer.ErrUnknownFormat},
		{"another database with a meta bucket", database(t, func(tx *bbolt.Tx) error {
			meta, err := tx.CreateBucket([]byte("meta"))
			return errors.Join(err, meta.Put([]byte("format"), []byte("something else")))
		}), relayer.ErrUnknownFormat},
		{"empty database", database(t, func(*bbolt.Tx) error { return nil }), relayer.ErrUnknownFormat},
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
	info, err := os.Stat(path)
	must(t, err)
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

func database(t *testing.T, fill func(*bbolt.Tx) error) []byte {
	t.Helper()
	return edited(t, nil, fill)
}

func usedSize(t *testing.T, content []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sized.db")
	write(t, path, content)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	must(t, err)
	defer func() { _ = db.Close() }()
	size := 0
	err = db.View(func(tx *bbolt.Tx) error {
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
	const temporary = "relayers.db.tmp123 relayers.db.tmp4567890"
	const kept = "other.db.tmp123 relayers.db.tmp relayers.db.tmp-notes relayers.db.tmp7"
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
				if !strings.HasSuffix(other, "tmp7") { // which can still be written
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
	_, err := bolt.Open(ctx, path)
	wantError(t, err, context.DeadlineExceeded)
}

// Files of this version must stay readable: a change of these texts needs another version.
func TestFormat_Entries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which it is 2000
		store, path := openTemp(t)
		rec := relayer.Record{ID: "a", Claim: "c", Document: []byte(`{"id":"a"}`), Private: []byte(`{}`), Terms: []string{"k=v", "x"}, Text: "t", Note: []byte("nn")}
		created, err := store.Create(t.Context(), rec)
		must(t, err)
		created.Terms = []string{"x"}
		if _, err = store.Update(t.Context(), created); err != nil {
			t.Fatal(err)
		}
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
