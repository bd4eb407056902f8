package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

var errDisk = errors.New("the disk is on fire")

// failing opens a store that holds a record called before, and whose next commit
// fails in the given way.
func failing(t *testing.T, fail func(commit func() error) error) (*bolt.Store, string) {
	t.Helper()
	store, path := opened(t)
	failCommit(store, 2, fail)
	if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
		t.Fatal(err)
	}
	return store, path
}

// failCommit has one commit of a store fail, counted from 1.
func failCommit(store *bolt.Store, which int, fail func(commit func() error) error) {
	commits := 0
	store.InterceptCommits(func(commit func() error) error {
		if commits++; commits == which {
			return fail(commit)
		}
		return commit()
	})
}

// TestSyncFails: the commit is there to be seen, and its sync failed.
func TestSyncFails(t *testing.T) {
	store, path := failing(t, syncFails)
	err := create(t, store, relayer.Record{ID: "doubtful"})()
	if !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) {
		t.Fatalf("error is %v, want %v alone", err, relayer.ErrOutcomeUnknown)
	}
	wantWorking(t, store, path, "before", "doubtful")
}

func TestCommitPanics(t *testing.T) {
	store, path := failing(t, func(func() error) error { panic("in the engine") })
	err := create(t, store, relayer.Record{ID: "lost"})()
	if !errors.Is(err, relayer.ErrUnavailable) {
		t.Fatalf("error is %v, want %v", err, relayer.ErrUnavailable)
	}
	wantWorking(t, store, path, "before")
}

func TestCommitPanicsAfterwards(t *testing.T) {
	store, path := failing(t, func(commit func() error) error {
		_ = commit()
		panic("in the engine")
	})
	err := create(t, store, relayer.Record{ID: "doubtful"})()
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Fatalf("error is %v, want %v", err, relayer.ErrOutcomeUnknown)
	}
	wantWorking(t, store, path, "before", "doubtful")
}

// wantWorking fails unless the store holds what it should, takes writes, and is
// sound, now and after reopening.
func wantWorking(t *testing.T, store *bolt.Store, path string, ids ...string) {
	t.Helper()
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Errorf("the store does not work again: %v", err)
	}
	ids = append(ids, "after")
	wantIDs(t, store, ids)
	wantSound(t, store)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	again := open(t, path)
	defer again.Close()
	wantIDs(t, again, ids)
	wantSound(t, again)
}

func wantIDs(t *testing.T, store relayer.Store, ids []string) {
	t.Helper()
	recs, total, err := store.List(t.Context(), 0, len(ids)+1)
	if err != nil || total != len(ids) || len(recs) != len(ids) {
		t.Errorf("%d records, total %d, want %d; error %v", len(recs), total, len(ids), err)
		return
	}
	for i, id := range ids {
		if recs[i].ID != id {
			t.Errorf("record %d is %q, want %q", i, recs[i].ID, id)
		}
	}
}

// TestFailedBatch: a failed commit is the failure of all that it would have
// written, and of nothing more.
func TestFailedBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	defer store.Close()
	g := newGate()
	fail := false
	store.InterceptCommits(func(commit func() error) error {
		err := g.through(commit)
		if fail {
			return errors.Join(err, errDisk)
		}
		fail = true
		return err
	})
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	var writes []func() error
	for i := range 5 {
		writes = append(writes, create(t, store, relayer.Record{ID: fmt.Sprint(i)}))
	}
	writes = append(writes, create(t, store, relayer.Record{ID: "0"}))
	answers := behind(t, store, writes...)
	close(g.open)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	for i, answer := range answers[:5] {
		if err := <-answer; !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("write %d: error is %v, want %v", i, err, relayer.ErrOutcomeUnknown)
		}
	}
	if err := <-answers[5]; !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("the write that was refused: error is %v, want %v", err, relayer.ErrUnavailable)
	}
	if _, err := store.Get(t.Context(), "3"); err != nil {
		t.Errorf("Get after an unknown outcome: %v", err)
	}
}
