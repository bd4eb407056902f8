package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// patience is the longest time to wait for a change.
const patience = 10 * time.Second

// watching returns the store as a WatchStore, or skips the case.
func watching(t *testing.T, store relayer.Store) relayer.WatchStore {
	t.Helper()
	watched, ok := store.(relayer.WatchStore)
	if !ok {
		t.Skip("the store has no Watch")
	}
	return watched
}

// watcher receives changes one at a time.
type watcher struct {
	pull func() (relayer.RecordChange, error, bool)
	end  context.CancelFunc
	stop func()
}

func watch(t *testing.T, store relayer.Store) watcher {
	t.Helper()
	return watchAfter(t, store, "")
}

// watchAfter resumes after a position, unless it is empty.
func watchAfter(t *testing.T, store relayer.Store, position string) watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pull, stop := iter.Pull2(watching(t, store).Watch(ctx, position))
	end := func() { stop(); cancel() }
	t.Cleanup(end)
	return watcher{pull, cancel, end}
}

// next ends the watch if no change arrives in time.
func (w watcher) next() (relayer.RecordChange, error, bool) {
	defer time.AfterFunc(patience, w.end).Stop()
	return w.pull()
}

func (w watcher) want(t *testing.T, kind relayer.ChangeKind, rec relayer.Record) {
	t.Helper()
	change, err, ok := w.next()
	if err != nil || !ok {
		t.Fatalf("Watch: error %v, ended is %t, want %s %q", err, !ok, kind, rec.ID)
	}
	if change.Kind != kind {
		t.Fatalf("Watch: %s %q, want %s %q", change.Kind, change.Record.ID, kind, rec.ID)
	}
	wantSame(t, "Watch", change.Record, rec)
}

func watchReportsWrites(t *testing.T, store relayer.Store) {
	first, second := watch(t, store), watch(t, store)
	made := mustCreate(t, store, claiming("one", "x"))
	_, err := store.Create(t.Context(), sample("one"))
	wantError(t, "Create", err, relayer.ErrExists)
	changed := made
	changed.Document, changed.Private, changed.Claim = []byte(`{"changed":1}`), nil, "y"
	changed = mustUpdate(t, store, changed)
	_, err = store.Update(t.Context(), made)
	wantError(t, "Update", err, relayer.ErrConflict)
	other := mustCreate(t, store, sample("two"))
	mustDelete(t, store, changed)
	again := mustCreate(t, store, sample("one"))
	for _, w := range []watcher{first, second} {
		w.want(t, relayer.Created, made)
		w.want(t, relayer.Updated, changed)
		w.want(t, relayer.Created, other)
		w.want(t, relayer.Deleted, changed)
		w.want(t, relayer.Created, again)
	}
}

func watchBeginsWithCall(t *testing.T, store relayer.Store) {
	watching(t, store)
	for _, rec := range createMany(t, store, 3) {
		w := watch(t, store)
		rec = mustUpdate(t, store, rec)
		w.want(t, relayer.Updated, rec)
		mustDelete(t, store, rec)
		w.want(t, relayer.Deleted, rec)
	}
}

// watchReportsImports accepts either the records or ErrGap.
func watchReportsImports(t *testing.T, store relayer.Store) {
	w := watch(t, store)
	all := moved("m", 3)
	mustImport(t, store, all)
	for _, rec := range all {
		change, err, ok := w.next()
		if errors.Is(err, relayer.ErrGap) {
			return
		}
		if err != nil || !ok || change.Kind != relayer.Created {
			t.Fatalf("Watch: %s %q, error %v, ended is %t, want a create or %v", change.Kind, change.Record.ID, err, !ok, relayer.ErrGap)
		}
		wantSame(t, "Watch", change.Record, rec)
	}
}

// watchKeepsOrder applies the changes of concurrent writers. The result must be the
// stored records.
func watchKeepsOrder(t *testing.T, store relayer.Store) {
	const writers, writes, ids = 8, 40, 5
	w := watch(t, store)
	errs := race(writers, func(writer int) error {
		for i := range writes {
			if err := writeAny(t.Context(), store, numbered((writer+i)%ids), i); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	last := mustCreate(t, store, sample("last"))
	applied, latest := make(map[string]relayer.Record), make(map[string]uint64)
	for {
		change, err, ok := w.next()
		if err != nil || !ok {
			t.Fatalf("Watch: error %v, ended is %t", err, !ok)
		}
		rec := change.Record
		if before := latest[rec.ID]; rec.Revision < before || rec.Revision == before && change.Kind != relayer.Deleted {
			t.Fatalf("Watch: %s %q at %d after %d", change.Kind, rec.ID, rec.Revision, before)
		}
		latest[rec.ID], applied[rec.ID] = rec.Revision, rec
		if change.Kind == relayer.Deleted {
			delete(applied, rec.ID)
		}
		if rec.ID == last.ID {
			break
		}
	}
	page, total := mustList(t, store, 0, ids+2)
	if total != len(applied) {
		t.Fatalf("%d records are stored, and %d by the changes", total, len(applied))
	}
	for _, rec := range page {
		wantSame(t, "the changes", applied[rec.ID], rec)
	}
}

// writeAny creates, updates or deletes a record. Losing a race is not an error.
func writeAny(ctx context.Context, store relayer.Store, id string, i int) error {
	rec, err := store.Get(ctx, id)
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		_, err = store.Create(ctx, sample(id))
	case err == nil && i%4 == 0:
		err = store.Delete(ctx, id, rec.Revision)
	case err == nil:
		rec.Document = fmt.Appendf(nil, `{"i":%d}`, i)
		_, err = store.Update(ctx, rec)
	}
	if matchesAny(err, []error{relayer.ErrExists, relayer.ErrConflict, relayer.ErrNotFound}) {
		return nil
	}
	return err
}

func watchEndsWithContext(t *testing.T, store relayer.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	changes := watching(t, store).Watch(ctx, "")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range changes {
		}
	}()
	mustCreate(t, store, sample("one"))
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("Watch goes on after its context has ended")
	}
}

func watchAfterClose(t *testing.T, store relayer.Store) {
	closer, ok := watching(t, store).(io.Closer)
	if !ok {
		t.Skip("the store has no Close")
	}
	w := watch(t, store)
	if err := closer.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for _, w := range []watcher{w, watch(t, store)} {
		if _, err, _ := w.next(); !errors.Is(err, relayer.ErrUnavailable) {
			t.Fatalf("Watch of a closed store: error is %v, want %v", err, relayer.ErrUnavailable)
		}
	}
}

// watchedBytesNotAliased changes the bytes of a change, which belong to its consumer.
func watchedBytesNotAliased(t *testing.T, store relayer.Store) {
	first, second := watch(t, store), watch(t, store)
	made := mustCreate(t, store, sample("one"))
	want := sample("one")
	want.Revision = made.Revision
	change, err, ok := first.next()
	if err != nil || !ok {
		t.Fatalf("Watch: error %v, ended is %t", err, !ok)
	}
	scribble(change.Record)
	scribble(made)
	second.want(t, relayer.Created, want)
	wantSame(t, "Get", mustGet(t, store, "one"), want)
}
