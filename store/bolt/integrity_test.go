package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// flippedRecord opens a store of 50 records and flips one bit in the amount that
// the document of record 7 holds.
func flippedRecord(t *testing.T) *bolt.Store {
	t.Helper()
	store, path := opened(t)
	for i := range 50 {
		rec := relayer.Record{ID: fmt.Sprintf("id-%02d", i), Document: fmt.Appendf(nil, `{"gas_price_cap":10000000%02d}`, i)}
		if _, err := store.Create(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	// Pages that were freed hold older copies of the record.
	content := read(t, path)
	for at := range content {
		if bytes.HasPrefix(content[at:], []byte(`:1000000007}`)) {
			overwrite(t, path, int64(at+1), []byte{'3'})
		}
	}
	return store
}

func TestChecksum_DamagedRecordIsNotServed(t *testing.T) {
	store := flippedRecord(t)
	_, err := store.Get(t.Context(), "id-07")
	wantCorrupt(t, "Get", err, `"id-07"`)
	_, _, err = store.AppendDocument(t.Context(), nil, "id-07")
	wantCorrupt(t, "AppendDocument", err, `"id-07"`)
	_, _, err = store.List(t.Context(), 5, 10)
	wantCorrupt(t, "List", err, `"id-07"`)
	_, _, err = store.AppendDocuments(t.Context(), nil, 0, 50)
	wantCorrupt(t, "AppendDocuments", err, `"id-07"`)
	wantCorrupt(t, "Check", store.Check(t.Context()), `"id-07"`)
}

func TestChecksum_DamagedRecordIsNotRewritten(t *testing.T) {
	store := flippedRecord(t)
	_, err := store.Update(t.Context(), relayer.Record{ID: "id-07", Revision: 8, Document: []byte("{}")})
	wantCorrupt(t, "Update", err, `"id-07"`)
	wantCorrupt(t, "Delete", store.Delete(t.Context(), "id-07", 8), `"id-07"`)
	wantCorrupt(t, "Check", store.Check(t.Context()), `"id-07"`)
}

func TestChecksum_OtherRecordsStayUsable(t *testing.T) {
	store := flippedRecord(t)
	for i := range 50 {
		if id := fmt.Sprintf("id-%02d", i); i != 7 {
			if _, err := store.Get(t.Context(), id); err != nil {
				t.Errorf("Get(%s): %v", id, err)
			}
		}
	}
	if recs, total, err := store.List(t.Context(), 8, 42); err != nil || len(recs) != 42 || total != 50 {
		t.Errorf("List returned %d of %d records, error %v", len(recs), total, err)
	}
	if _, err := store.Update(t.Context(), relayer.Record{ID: "id-08", Revision: 9}); err != nil {
		t.Errorf("Update of another record: %v", err)
	}
}

func wantCorrupt(t *testing.T, call string, err error, part string) {
	t.Helper()
	if !errors.Is(err, relayer.ErrCorrupt) || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: error is %v, want %v with %s", call, err, relayer.ErrCorrupt, part)
	}
	if err != nil && strings.Contains(err.Error(), "gas_price_cap") {
		t.Errorf("%s: error %q quotes the record", call, err)
	}
}

// A write to a file that is no longer at its path would be lost at the next
// start.
func TestWrite_FileNotAtItsPath(t *testing.T) {
	tests := map[string]struct {
		move func(path string) error
		want string
	}{
		"deleted": {os.Remove, "no file is at its path"},
		"renamed": {func(path string) error { return os.Rename(path, path+".old") }, "no file is at its path"},
		"replaced": {func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		}, "another file is at its path"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store, path := opened(t)
			if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
				t.Fatal(err)
			}
			if err := store.Ready(t.Context()); err != nil {
				t.Errorf("Ready before: %v", err)
			}
			if err := test.move(path); err != nil {
				t.Fatal(err)
			}
			for call, err := range map[string]error{
				"Create": create(t, store, relayer.Record{ID: "after"})(),
				"Delete": store.Delete(t.Context(), "before", 1),
				"Import": store.Import(t.Context(), []relayer.Record{{ID: "imported", Revision: 7}}),
				"Ready":  store.Ready(t.Context()),
			} {
				if !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: error is %v, want one that says %q", call, err, test.want)
				}
			}
			wantIDs(t, store, []string{"before"})
		})
	}
}

// The file outgrows the address space that Open reserved, over and over, while
// reads hold snapshots.
func TestWrite_FileOutgrowsItsMapping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path, bolt.WithMapping(1<<16))
	defer func() { _ = store.Close() }()
	ended := make(chan struct{})
	var reads sync.WaitGroup
	reads.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if _, _, err := store.List(t.Context(), 0, 100); err != nil {
				t.Errorf("List: %v", err)
				return
			}
		}
	})
	const n = 3000
	createAll(t, store, 0, n/2)
	records := make([]relayer.Record, n/2)
	for i := range records {
		records[i] = numbered(n/2 + i)
		records[i].Document = bytes.Repeat(records[i].Document, 20)
		records[i].Revision = uint64(n + i)
	}
	if err := store.Import(t.Context(), records); err != nil {
		t.Errorf("Import: %v", err)
	}
	close(ended)
	reads.Wait()
	if _, total, err := store.List(t.Context(), 0, 1); err != nil || total != n {
		t.Errorf("%d records, want %d; error %v", total, n, err)
	}
	wantSound(t, store)
}

func TestOpen_RemovesOldDrafts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relayers.db")
	old := time.Now().Add(-time.Hour)
	kept := []string{"relayers.db.tmp7", "relayers.db.tmp-notes", "relayers.db.tmp", "other.db.tmp123"}
	for _, name := range append(kept, "relayers.db.tmp123", "relayers.db.tmp4567890") {
		file := filepath.Join(dir, name)
		write(t, file, []byte("draft"))
		if name != kept[0] {
			if err := os.Chtimes(file, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := "other.db.tmp123 relayers.db relayers.db.tmp relayers.db.tmp-notes relayers.db.tmp7"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the directory has %s, want %s", got, want)
	}
}

func TestOpen_NilOption(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	if _, err := bolt.Open(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), "option is nil") {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file was created: %v", err)
	}
}

// A read never returns a commit whose sync has not succeeded.
func TestRead_OnlyDurableCommits(t *testing.T) {
	store, _ := opened(t)
	committed, synced := make(chan struct{}), make(chan struct{})
	store.InterceptCommits(func(commit func() error) error {
		err := commit()
		close(committed)
		<-synced
		return err
	})
	result := make(chan error, 1)
	go func() { result <- create(t, store, relayer.Record{ID: "new"})() }()
	<-committed
	if _, err := store.Get(t.Context(), "new"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get before the commit returned: error is %v, want %v", err, relayer.ErrNotFound)
	}
	close(synced)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), "new"); err != nil {
		t.Errorf("Get after the commit returned: %v", err)
	}
}

func TestOpen_ContextEndsWhileWaitingForLock(t *testing.T) {
	_, path := opened(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := bolt.Open(ctx, path, bolt.WithLockTimeout(time.Hour))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want %v", err, context.DeadlineExceeded)
	}
}

// A copy of a file that another program overwrites meanwhile is not a backup.
func TestBackup_FileOverwrittenMeanwhile(t *testing.T) {
	store, path := opened(t)
	createAll(t, store, 0, 100)
	noise := bytes.Repeat([]byte("noise"), 1000)
	_, err := store.Backup(t.Context(), writerFunc(func(part []byte) (int, error) {
		overwrite(t, path, 0, append(noise, noise...))
		return len(part), nil
	}))
	if !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("error is %v, want %v", err, relayer.ErrCorrupt)
	}
}

func TestBackup_ContextEnds(t *testing.T) {
	store, _ := opened(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := store.Backup(ctx, writerFunc(func(part []byte) (int, error) {
		cancel()
		return len(part), nil
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(part []byte) (int, error) { return f(part) }
