package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// A commit that is in the file when it fails takes effect: the recovery syncs it again.
func TestCommit_Fails(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func(commit func() error) error
		isDone bool
	}{
		"sync":                   {failSync, true},
		"panic":                  {func(func() error) error { panic("in the engine") }, false},
		"panic after the header": {func(commit func() error) error { _ = commit(); panic("in the engine") }, true},
	} {
		for _, ids := range [][]string{{"created"}, {"m-0", "m-1"}} {
			store, path := openTemp(t)
			failCommit(store, 2, c.fail)
			must(t, create(t, store, relayer.Record{ID: "before"})())
			write := create(t, store, relayer.Record{ID: ids[0]})
			if len(ids) > 1 {
				write = importAll(t, store, numberedRecords("m", len(ids), 10))
			}
			want := []string{"before"}
			if c.isDone {
				want = append(want, ids...)
			}
			if err := write(); (err == nil) != c.isDone || err != nil && !errors.Is(err, relayer.ErrUnavailable) {
				t.Fatalf("%s, write of %v: error is %v, want success: %t", name, ids, err, c.isDone)
			}
			wantIDs(t, store, want)
			wantRecovered(t, store, path, want...)
		}
	}
}

// wantRecovered creates the record after, and fails unless the store then is sound and
// holds exactly the given records and that one, also after reopening.
func wantRecovered(t *testing.T, store *bolt.Store, path string, ids ...string) {
	t.Helper()
	must(t, create(t, store, relayer.Record{ID: "after"})()) // the store works again
	ids = append(ids, "after")
	wantIDs(t, store, ids)
	wantSound(t, store)
	must(t, store.Close())
	again := open(t, path)
	wantIDs(t, again, ids)
	wantSound(t, again)
}

// A failed commit is the failure of all its writes, and of no other write.
func TestCommit_FailedBatch(t *testing.T) {
	store, _ := openTemp(t)
	g := newGate()
	fail := false
	store.InterceptCommits(func(commit func() error) error {
		if fail {
			return errDisk
		}
		fail = true
		return g.through(commit)
	})
	g.hold(create(t, store, relayer.Record{ID: "first"}))
	var writes []func() error
	for i := range 5 {
		writes = append(writes, create(t, store, relayer.Record{ID: fmt.Sprint(i)}))
	}
	writes = append(writes, create(t, store, relayer.Record{ID: "0"}))
	results := enqueue(t, store, writes...)
	g.release(t)
	wantResults(t, results, slices.Repeat([]error{relayer.ErrUnavailable}, 5)...)
	const remedy = "another write of the same commit failed: try again"
	if err := <-results[5]; !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("the write that was rejected: error is %v, want %v with %q", err, relayer.ErrUnavailable, remedy)
	}
	wantIDs(t, store, []string{"first"})
}

// createUnknown creates a record whose commit is in the file and whose recovery fails.
func createUnknown(t *testing.T, store *bolt.Store) {
	t.Helper()
	err := create(t, store, relayer.Record{ID: "unknown"})()
	if !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) {
		t.Fatalf("error is %v, want only %v", err, relayer.ErrOutcomeUnknown)
	}
}

// createOtherStore creates a file with one record, other.
func createOtherStore(t *testing.T, path string) {
	t.Helper()
	store := open(t, path)
	must(t, create(t, store, relayer.Record{ID: "other"})())
	must(t, store.Close())
}

// wantOtherStore fails unless the file holds what createOtherStore wrote.
func wantOtherStore(t *testing.T, path string) {
	t.Helper()
	wantIDs(t, open(t, path), []string{"other"})
}

// The process has changed its directory to one with a file of the same name.
func TestRecovery_ChangedDirectory(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	createOtherStore(t, filepath.Join(there, "relayers.db"))
	t.Chdir(here)
	store := open(t, "relayers.db")
	failCommit(store, 2, failSync)
	must(t, create(t, store, relayer.Record{ID: "before"})())
	t.Chdir(there)
	wantSound(t, store)
	for _, id := range []string{"recovered", "after"} {
		must(t, create(t, store, relayer.Record{ID: id})())
	}
	wantIDs(t, store, []string{"before", "recovered", "after"})
	wantSound(t, store)
	wantOtherStore(t, "relayers.db")
}

// failedRecovery returns a store that holds the record before, and whose file also holds unknown. A recovery
// has closed its file and could not open it again, because all pages but the headers
// were overwritten. The function that it returns repairs the file.
func failedRecovery(t *testing.T, opts ...bolt.Option) (store *bolt.Store, path string, repair func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "relayers.db")
	store = open(t, path, opts...)
	var whole []byte
	failCommit(store, 2, func(commit func() error) error {
		err := commit()
		whole = read(t, path)
		headers := 2 * os.Getpagesize()
		overwrite(t, path, int64(headers), make([]byte, len(whole)-headers))
		return errors.Join(err, errDisk)
	})
	must(t, create(t, store, relayer.Record{ID: "before"})())
	createUnknown(t, store)
	return store, path, func() { overwrite(t, path, 0, whole) }
}

// After a recovery that failed, reads go on, without the write in doubt, and the next write
// retries it.
func TestRecovery_RetriedByWrite(t *testing.T) {
	store, path, repair := failedRecovery(t)
	wantCreateUnavailable(t, store)
	wantIDs(t, store, []string{"before"})
	repair()
	wantRecovered(t, store, path, "before", "unknown")
}

// fileAway returns a store whose second commit is in doubt: it fails after the file has it, and the
// recovery does not find the file at its path. The function that it returns puts the file back.
func fileAway(t *testing.T, opts ...bolt.Option) (store *bolt.Store, path string, putBack func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "relayers.db")
	store = open(t, path, opts...)
	failCommit(store, 2, func(commit func() error) error {
		return errors.Join(commit(), os.Rename(path, path+".away"), errDisk)
	})
	return store, path, func() { must(t, os.Rename(path+".away", path)) }
}

// A history does not have the change of a commit in doubt, and does not take it for damage.
func TestRecovery_History(t *testing.T) {
	store, path, putBack := fileAway(t)
	must(t, create(t, store, relayer.Record{ID: "before"})())
	createUnknown(t, store)
	for _, query := range []relayer.HistoryQuery{{Limit: 10}, {ID: "before", Limit: 10}} {
		changes, err := store.History(t.Context(), query)
		if err != nil || len(changes) != 1 || changes[0].Record.ID != "before" {
			t.Errorf("query %+v: changes %v, error %v, want the change of before", query, changes, err)
		}
	}
	putBack()
	wantRecovered(t, store, path, "before", "unknown")
}

// The commit in doubt has deleted changes that were too old, which the memory still has.
func TestRecovery_PrunedHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _, putBack := fileAway(t, bolt.WithHistory(1000, time.Hour))
		must(t, create(t, store, relayer.Record{ID: "before"})())
		time.Sleep(time.Hour + time.Second)
		createUnknown(t, store)
		for _, query := range []relayer.HistoryQuery{{Limit: 10}, {ID: "before", Limit: 10}} {
			if changes, err := store.History(t.Context(), query); err != nil || len(changes) > 0 {
				t.Errorf("query %+v: changes %v, error %v, want none", query, changes, err)
			}
		}
		putBack()
		must(t, create(t, store, relayer.Record{ID: "after"})())
		must(t, store.Close())
	})
}

// The file has the commit before the one in doubt when it can be opened again.
func TestRecovery_DropsCommit(t *testing.T) {
	store, path, repair := failedRecovery(t)
	repair()
	whole := read(t, path)
	overwrite(t, path, int64(newerHeader(whole)+60), []byte{whole[newerHeader(whole)+60] ^ 1})
	must(t, create(t, store, relayer.Record{ID: "after"})())
	wantIDs(t, store, []string{"before", "after"})
	wantSound(t, store)
	// A later recovery finds a commit with the transaction ID of the dropped one.
	failCommit(store, 1, func(func() error) error { return errDisk })
	wantCreateUnavailable(t, store)
	must(t, create(t, store, relayer.Record{ID: "last"})())
	wantIDs(t, store, []string{"before", "after", "last"})
}

// The file gets the content of another store after a recovery closed it. The transaction IDs
// can be the same.
func TestRecovery_OtherContent(t *testing.T) {
	for commits := range 6 {
		store, path, _ := failedRecovery(t)
		overwrite(t, path, 0, otherContent(t, commits))
		wantCreateUnavailable(t, store)
		wantCreateUnavailable(t, store)
		wantIDs(t, store, []string{"before"})
	}
}

// otherContent returns the file of a store that committed as often.
func otherContent(t *testing.T, commits int) []byte {
	t.Helper()
	store, path := openTemp(t)
	for i := range commits {
		must(t, create(t, store, numbered(i))())
	}
	must(t, store.Close())
	return read(t, path)
}

// The file is removed after a recovery closed it. New files at its path are not mistaken
// for it, although they can get the same inode number.
func TestRecovery_FileRemoved(t *testing.T) {
	store, path, repair := failedRecovery(t)
	wantCreateUnavailable(t, store)
	repair()
	must(t, os.Remove(path))
	for range 20 {
		createOtherStore(t, path)
		wantCreateUnavailable(t, store)
		wantOtherStore(t, path)
		must(t, os.Remove(path))
	}
}

// A write whose context ends while it recovers the file does not leave it to other processes.
func TestRecovery_ContextEnds(t *testing.T) {
	store, path := openTemp(t)
	failCommit(store, 2, func(func() error) error { return errDisk })
	must(t, create(t, store, relayer.Record{ID: "before"})())
	wantError(t, create(t, store, relayer.Record{ID: "failed"})(), relayer.ErrUnavailable)
	wantError(t, errorOf(store.Create(newEndingContext(t, 2), relayer.Record{ID: "canceled"})), context.Canceled)
	wantLocked(t, path)
	must(t, create(t, store, relayer.Record{ID: "after"})())
	wantIDs(t, store, []string{"before", "after"})
}

// A recovery may take longer than each of the probes that ask for it.
func TestRecovery_LongerThanProbes(t *testing.T) {
	store, _ := openTemp(t)
	createAll(t, store, 0, 50)
	failCommit(store, 1, func(func() error) error { return errDisk })
	wantError(t, create(t, store, relayer.Record{ID: "failed"})(), relayer.ErrUnavailable)
	err := store.Ready(newEndingContext(t, 10))
	for i := 0; i < 20 && err != nil; i++ {
		err = store.Ready(newEndingContext(t, 10))
	}
	must(t, err)
}

// While recoveries fail, no other process can open the file.
func TestRecovery_FileStaysLocked(t *testing.T) {
	store, path, repair := failedRecovery(t)
	for range 3 {
		wantLocked(t, path)
		wantCreateUnavailable(t, store)
	}
	repair()
	wantLocked(t, path)
	must(t, store.Ready(t.Context()))
	wantLocked(t, path)
	must(t, store.Close())
	must(t, open(t, path).Close())
}

func wantLocked(t *testing.T, path string) {
	t.Helper()
	wantError(t, bolt.OpenAndCloseEngine(path, func() {}, func() {}), bolt.ErrLocked)
}

// The ID of a free page is damaged, and then a commit fails. The engine would overwrite a page
// that is in use.
func TestRecovery_DamagedFreelist(t *testing.T) {
	store, path := openTemp(t)
	createAll(t, store, 0, 300)
	failCommit(store, 1, func(commit func() error) error {
		listAsFree(t, path, rootOf(read(t, path)))
		return errDisk
	})
	wantCreateUnavailable(t, store)
	for i := range 60 {
		wantError(t, create(t, store, numbered(1000+i))(), relayer.ErrCorrupt)
	}
	if _, total, err := list(t.Context(), store, page(0, 0)); err != nil || total != 300 {
		t.Errorf("total is %d, error %v", total, err)
	}
}

func wantCreateUnavailable(t *testing.T, store *bolt.Store) {
	t.Helper()
	wantError(t, create(t, store, relayer.Record{ID: "refused"})(), relayer.ErrUnavailable)
}

// A commit of unknown outcome is reported to watchers when its recovery succeeds, and not
// as a gap.
func TestWatch_UnknownOutcome(t *testing.T) {
	store, _, repair := failedRecovery(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changes := store.Watch(ctx, "")
	wantError(t, errorOf(store.Get(ctx, "unknown")), relayer.ErrNotFound) // before the recovery
	repair()
	must(t, store.Ready(ctx))
	must(t, errorOf(store.Get(ctx, "unknown"))) // after the recovery
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
	store, path := openTemp(t)
	createAll(t, store, 0, changes)
	paused := newPausingContext(t)
	copied := inBackground(func() error { return store.Backup(paused, path+".copy") })
	<-paused.reached
	must(t, store.Close())
	must(t, open(t, path).Close())
	close(paused.open)
	wantError(t, <-copied, want)
	if want != nil {
		wantNoOtherFiles(t, path)
		return
	}
	must(t, open(t, path+".copy").Close())
}
