package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// doubtfully makes a write whose sync fails, so that the next one has to open
// the file anew.
func doubtfully(t *testing.T, store *bolt.Store) {
	t.Helper()
	if err := create(t, store, relayer.Record{ID: "doubtful"})(); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("error is %v, want %v", err, relayer.ErrOutcomeUnknown)
	}
}

func syncFails(commit func() error) error { return errors.Join(commit(), errDisk) }

// otherStore makes a store of one record called other.
func otherStore(t *testing.T, path string) {
	t.Helper()
	store := open(t, path)
	if err := create(t, store, relayer.Record{ID: "other"})(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantUntouched fails where the file at path holds anything but what otherStore
// put there.
func wantUntouched(t *testing.T, path string) {
	t.Helper()
	store := open(t, path)
	defer store.Close()
	wantIDs(t, store, []string{"other"})
}

// TestRecoveryElsewhere: the process has changed its directory, to one with a
// file of the same name.
func TestRecoveryElsewhere(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	otherStore(t, filepath.Join(there, "relayers.db"))
	t.Chdir(here)
	store := open(t, "relayers.db")
	defer store.Close()
	failCommit(store, 2, syncFails)
	if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
		t.Fatal(err)
	}
	t.Chdir(there)
	wantSound(t, store)
	doubtfully(t, store)
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Error(err)
	}
	wantIDs(t, store, []string{"before", "doubtful", "after"})
	wantSound(t, store)
	wantUntouched(t, "relayers.db")
}

// TestRecoveryOfReplaced: another file stands at the path.
func TestRecoveryOfReplaced(t *testing.T) {
	store, path := failing(t, syncFails)
	doubtfully(t, store)
	aside := path + ".aside"
	if err := os.Rename(path, aside); err != nil {
		t.Fatal(err)
	}
	wantNoWrite(t, store)
	otherStore(t, path)
	wantNoWrite(t, store)
	wantIDs(t, store, []string{"before", "doubtful"})
	wantUntouched(t, path)
	if err := os.Rename(aside, path); err != nil {
		t.Fatal(err)
	}
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Errorf("Create with the file back in its place: %v", err)
	}
	wantIDs(t, store, []string{"before", "doubtful", "after"})
}

// failedRecovery returns a store that holds the records before and doubtful. A
// recovery has closed its file and could not open it again, because all pages but
// the headers were overwritten. The function that it returns repairs the file.
func failedRecovery(t *testing.T, opts ...bolt.Option) (store *bolt.Store, path string, repair func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "relayers.db")
	store = open(t, path, opts...)
	t.Cleanup(func() { _ = store.Close() })
	var whole []byte
	failCommit(store, 2, func(commit func() error) error {
		err := commit()
		whole = read(t, path)
		headers := 2 * os.Getpagesize()
		overwrite(t, path, int64(headers), make([]byte, len(whole)-headers))
		return errors.Join(err, errDisk)
	})
	if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
		t.Fatal(err)
	}
	doubtfully(t, store)
	return store, path, func() { overwrite(t, path, 0, whole) }
}

// TestReadsAfterFailedRecovery: a recovery has let go of the file and could not
// use it. Once the file is well again, so are reads, without a write.
func TestReadsAfterFailedRecovery(t *testing.T) {
	store, _, repair := failedRecovery(t)
	wantNoWrite(t, store)
	_, err := store.Get(t.Context(), "before")
	if !errors.Is(err, relayer.ErrUnavailable) || strings.Contains(err.Error(), "closed") {
		t.Errorf("Get without the file: error is %v", err)
	}
	repair()
	wantIDs(t, store, []string{"before", "doubtful"})
	wantSound(t, store)
}

// TestRecoveryOfRemoved: a recovery got as far as to let go of the file, and the
// file is removed. Files made after it must not be taken for it, though they may
// be given its number.
func TestRecoveryOfRemoved(t *testing.T) {
	store, path, repair := failedRecovery(t)
	wantNoWrite(t, store)
	repair()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		otherStore(t, path)
		wantNoWrite(t, store)
		wantUntouched(t, path)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Close does not wait for a lock that another process has taken during a recovery.
func TestClose_RecoveryWaitsForLock(t *testing.T) {
	store, path, repair := failedRecovery(t, bolt.WithLockTimeout(time.Hour))
	repair()
	other := open(t, path)
	defer other.Close()
	wantGivenUp(t, store)
	closed := make(chan error, 1)
	go func() { closed <- store.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Close still waits")
	}
}

func wantNoWrite(t *testing.T, store *bolt.Store) {
	t.Helper()
	if err := create(t, store, relayer.Record{ID: "after"})(); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("Create without the file: error is %v, want %v", err, relayer.ErrUnavailable)
	}
}
