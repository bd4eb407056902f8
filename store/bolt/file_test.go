package bolt_test

import (
	"bytes"
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

// TestRefusedFiles opens files that are not a store's, and looks at every byte
// of them afterwards.
func TestRefusedFiles(t *testing.T) {
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
			_, err := tx.CreateBucket([]byte("things"))
			return err
		}), relayer.ErrUnknownFormat},
		{"another database with a meta bucket", database(t, func(tx *bbolt.Tx) error {
			meta, err := tx.CreateBucket([]byte("meta"))
			return errors.Join(err, meta.Put([]byte("format"), []byte("something else")))
		}), relayer.ErrUnknownFormat},
		{"empty database", database(t, func(*bbolt.Tx) error { return nil }), relayer.ErrUnknownFormat},
		{"newer format", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("go-relayer relayers\x00\x00\x00\x02"))
		}), relayer.ErrNewerFormat},
		{"without a bucket", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.DeleteBucket([]byte("ids"))
		}), relayer.ErrCorrupt},
		{"without its state", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Delete([]byte("state"))
		}), relayer.ErrCorrupt},
		{"with another total", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("meta")).Put([]byte("state"), make([]byte, 24))
		}), relayer.ErrCorrupt},
		{"with a short block", edited(t, whole, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("blocks")).Put(make([]byte, 8), []byte("short"))
		}), relayer.ErrCorrupt},
		{"cut to a few bytes", cut(100), relayer.ErrUnknownFormat},
		{"cut in the second page", cut(5000), relayer.ErrUnknownFormat},
		{"cut after the first pages", cut(3 * os.Getpagesize()), relayer.ErrCorrupt},
		{"cut at half", cut(usedSize(t, whole) / 2), relayer.ErrCorrupt},
		{"cut by a byte", cut(usedSize(t, whole) - 1), relayer.ErrCorrupt},
		{"with noise after the first pages", noisy(whole), relayer.ErrCorrupt},
		{"with both headers broken", headless(whole), relayer.ErrCorrupt},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "relayers.db")
			write(t, path, test.content)
			store, err := bolt.Open(t.Context(), path)
			if err == nil {
				_ = store.Close()
			}
			if !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("error %q does not name the file", err)
			}
			if !bytes.Equal(read(t, path), test.content) {
				t.Error("the file has been changed")
			}
			wantAlone(t, path)
		})
	}
}

func TestOpenDirectory(t *testing.T) {
	_, err := bolt.Open(t.Context(), t.TempDir())
	if !errors.Is(err, relayer.ErrUnknownFormat) {
		t.Fatalf("error is %v, want %v", err, relayer.ErrUnknownFormat)
	}
}

func TestOpenOfNoName(t *testing.T) {
	t.Chdir(t.TempDir())
	tests := map[string]string{"": "the path is empty", "new" + string(filepath.Separator): "directory"}
	for path, want := range tests {
		_, err := bolt.Open(t.Context(), path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): error is %v, want one that says %q", path, err, want)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) > 0 {
		t.Errorf("%v is left behind, error %v", entries, err)
	}
}

func TestOpenInMissingDirectory(t *testing.T) {
	_, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "missing", "relayers.db"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error is %v, want %v", err, os.ErrNotExist)
	}
}

func TestOpenOfLinkToNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relayers.db")
	if err := os.Symlink(filepath.Join(dir, "missing"), path); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if store, err := bolt.Open(t.Context(), path); err == nil {
		_ = store.Close()
		t.Fatal("a link to nothing was opened")
	}
	wantAlone(t, path)
}

func TestNewFileIsPrivateAndAlone(t *testing.T) {
	_, path := opened(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode is %o, want 600", mode)
	}
	wantAlone(t, path)
}

func TestLockTimeout(t *testing.T) {
	store, path := opened(t)
	start := time.Now()
	_, err := bolt.Open(t.Context(), path, bolt.WithLockTimeout(150*time.Millisecond))
	if !errors.Is(err, bolt.ErrLocked) {
		t.Fatalf("error is %v, want %v", err, bolt.ErrLocked)
	}
	for _, part := range []string{path, "another process, or another Store of this process, has it open"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if waited := time.Since(start); waited < 50*time.Millisecond {
		t.Errorf("gave up after %v", waited)
	}
	if _, err := store.Create(t.Context(), relayer.Record{ID: "one"}); err != nil {
		t.Errorf("Create beside a refused open: %v", err)
	}
}

func TestLockIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	first := open(t, path)
	go func() {
		time.Sleep(100 * time.Millisecond)
		_ = first.Close()
	}()
	if err := open(t, path, bolt.WithLockTimeout(10*time.Second)).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRacingFirstOpens has many open a file that is not there yet: each gets the
// same file in its turn, and what the first wrote is there for the last.
func TestRacingFirstOpens(t *testing.T) {
	for round := range 5 {
		path := filepath.Join(t.TempDir(), "relayers.db")
		const openers = 8
		var done sync.WaitGroup
		for i := range openers {
			done.Go(func() {
				store, err := bolt.Open(t.Context(), path, bolt.WithLockTimeout(20*time.Second))
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
		if _, total, err := store.List(t.Context(), 0, 0); err != nil || total != openers {
			t.Errorf("round %d: %d of %d records, error %v", round, total, openers, err)
		}
		_ = store.Close()
		wantAlone(t, path)
	}
}

// wholeFile returns the bytes of a store with enough in it to have pages of
// every kind.
func wholeFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "whole.db")
	store := open(t, path)
	for first := 0; first < 300; first += 10 {
		records := make([]relayer.Record, 10)
		for i := range records {
			records[i] = numbered(first + i)
			records[i].Revision = uint64(1 + first + i)
		}
		if err := store.Import(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

// createAll creates records from first up to last, many at a time.
func createAll(t testing.TB, store relayer.Store, first, last int) {
	t.Helper()
	var done sync.WaitGroup
	for worker := range 64 {
		done.Go(func() {
			for i := first + worker; i < last; i += 64 {
				if _, err := store.Create(t.Context(), numbered(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// deleteAll deletes the records, many at a time.
func deleteAll(t testing.TB, store relayer.Store, recs []relayer.Record) {
	t.Helper()
	const workers = 1024
	var done sync.WaitGroup
	for worker := range workers {
		done.Go(func() {
			for i := worker; i < len(recs); i += workers {
				if err := store.Delete(t.Context(), recs[i].ID, recs[i].Revision); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

func numbered(i int) relayer.Record {
	return relayer.Record{
		ID:       fmt.Sprintf("id-%07d", i),
		Claim:    fmt.Sprintf("claim-%07d", i),
		Document: bytes.Repeat([]byte("document"), 40),
		Private:  bytes.Repeat([]byte("private"), 20),
	}
}

func database(t *testing.T, fill func(*bbolt.Tx) error) []byte {
	t.Helper()
	return edited(t, nil, fill)
}

// edited changes the content of a file through the engine, behind the store's
// back.
func edited(t *testing.T, content []byte, change func(*bbolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edited.db")
	write(t, path, content)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
	return read(t, path)
}

func usedSize(t *testing.T, content []byte) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sized.db")
	write(t, path, content)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	size := 0
	err = db.View(func(tx *bbolt.Tx) error {
		size = int(tx.Size())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func noisy(content []byte) []byte {
	content = bytes.Clone(content)
	for i := 2 * os.Getpagesize(); i < len(content); i++ {
		content[i] = byte(i * 7)
	}
	return content
}

func headless(content []byte) []byte {
	content = bytes.Clone(content)
	content[40] ^= 0xff
	content[os.Getpagesize()+40] ^= 0xff
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// wantAlone fails when something is left beside the file.
func wantAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != filepath.Base(path) {
			t.Errorf("%s is left behind", entry.Name())
		}
	}
}
