package bolt_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// Damage that no write meets is found in the background, and stops writes until a check
// finds none. Reads go on.
func TestCompare_FindsDamage(t *testing.T) {
	whole := corruptibleFile(t)
	size := os.Getpagesize()
	document := bytes.Index(whole, []byte(`{"id":"id-0000700"`))
	for name, at := range map[string]int{
		"in a document":      document + 100,
		"in a page":          document/size*size + 10,
		"in the page number": document / size * size,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "relayers.db")
			write(t, path, whole)
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				store := open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
				defer store.Close()
				time.Sleep(time.Minute)
				if err := store.Ready(t.Context()); err != nil {
					t.Fatalf("Ready before the damage: %v", err)
				}
				flipBits(t, path, whole, at, 0x80)
				time.Sleep(time.Minute)
				for call, err := range map[string]error{
					"Ready":  store.Ready(t.Context()),
					"Create": create(t, store, relayer.Record{ID: "new"})(),
					"Check":  store.Check(t.Context()),
				} {
					if !errors.Is(err, relayer.ErrCorrupt) {
						t.Errorf("%s: error is %v, want %v", call, err, relayer.ErrCorrupt)
					}
				}
				if text := logged.String(); strings.Count(text, "the file is damaged") != 2 || strings.Contains(text, "filler") {
					t.Errorf("the log is %q, want the damage once for the comparison and once for the check", text)
				}
				if recs, _, err := list(t.Context(), store, page(0, corruptibleRecords)); err != nil || len(recs) != corruptibleRecords {
					t.Errorf("List: %d records, error %v", len(recs), err)
				}
				flipBits(t, path, whole, at, 0)
				if err := store.Ready(t.Context()); !errors.Is(err, relayer.ErrCorrupt) {
					t.Errorf("Ready before a check: %v", err)
				}
				wantSound(t, store)
				if err := create(t, store, relayer.Record{ID: "new"})(); err != nil {
					t.Errorf("Create after a check: %v", err)
				}
			})
		})
	}
}

// The comparison finds nothing in a sound file that is written to, and a damaged record
// that was there before it does not stop writes.
func TestCompare_SoundFile(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) string{
		"empty":  func(t *testing.T) string { return filepath.Join(t.TempDir(), "new.db") },
		"sound":  func(t *testing.T) string { return writeTemp(t, corruptibleFile(t)) },
		"record": func(t *testing.T) string { return flippedFile(t) },
	} {
		t.Run(name, func(t *testing.T) {
			path := store(t)
			synctest.Test(t, func(t *testing.T) {
				store := open(t, path)
				defer store.Close()
				for i := range 30 {
					rec, err := store.Create(t.Context(), numbered(10_000+i))
					if err == nil && i%2 == 0 {
						err = store.Delete(t.Context(), rec.ID, rec.Revision, nil)
					}
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				if err := store.Ready(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func writeTemp(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayers.db")
	write(t, path, content)
	return path
}

// Above 100,000 relayers the progress of Open is logged.
func TestOpen_LogsProgress(t *testing.T) {
	for count, want := range map[int]string{100_000: "", 100_001: `msg="loading relayers" done=100001 total=100001`} {
		path := filepath.Join(t.TempDir(), "relayers.db")
		store := open(t, path)
		records := make([]relayer.Record, count)
		for i := range records {
			records[i] = relayer.Record{ID: numbered(i).ID, Revision: 1}
		}
		if err := errors.Join(store.Import(t.Context(), records), store.Close()); err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		if err := open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))).Close(); err != nil {
			t.Error(err)
		}
		if text := logged.String(); !strings.Contains(text, want) || (want == "") != (text == "") {
			t.Errorf("%d relayers: the log is %q, want %q", count, text, want)
		}
	}
}

func TestOpen_NilLogger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	if _, err := bolt.Open(t.Context(), path, bolt.WithLogger(nil)); err == nil || !strings.Contains(err.Error(), "logger is nil") {
		t.Errorf("error is %v", err)
	}
}
