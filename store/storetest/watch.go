package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

const patience = 10 * time.Second

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
	pull, stop := iter.Pull2(store.Watch(ctx, position))
	end := func() { stop(); cancel() }
	t.Cleanup(end)
	return watcher{pull, cancel, end}
}

// next ends the watch if no change arrives in time.
func (w watcher) next() (relayer.RecordChange, error, bool) {
	defer time.AfterFunc(patience, w.end).Stop()
	return w.pull()
}

// want expects a change with the terms of old before it.
func (w watcher) want(t *testing.T, kind relayer.ChangeKind, rec, old relayer.Record) {
	t.Helper()
	change, err, ok := w.next()
	if err != nil || !ok {
		t.Fatalf("Watch: error %v, ended is %t, want %s %q", err, !ok, kind, rec.ID)
	}
	wantChange(t, change, relayer.RecordChange{Kind: kind, Record: rec, OldTerms: old.Terms})
}

func wantChange(t *testing.T, got, want relayer.RecordChange) {
	t.Helper()
	if got.Kind != want.Kind {
		t.Fatalf("Watch: %s %q, want %s %q", got.Kind, got.Record.ID, want.Kind, want.Record.ID)
	}
	wantSame(t, "Watch", got.Record, want.Record)
	if !slices.Equal(got.OldTerms, want.OldTerms) {
		t.Fatalf("Watch: %s %q has the old terms %q, want %q", got.Kind, got.Record.ID, got.OldTerms, want.OldTerms)
	}
}

// wantEnd expects an error, which is the last.
func (w watcher) wantEnd(t *testing.T, what string, want error) {
	t.Helper()
	if change, err, ok := w.next(); !errors.Is(err, want) {
		t.Fatalf("%s: %s %q, error %v, ended is %t, want %v", what, change.Kind, change.Record.ID, err, !ok, want)
	}
	if change, err, ok := w.next(); ok {
		t.Fatalf("%s: %s %q and error %v after the error %v", what, change.Kind, change.Record.ID, err, want)
	}
}

func watchReportsWrites(t *testing.T, store relayer.Store) {
	first, second := watch(t, store), watch(t, store)
	made := mustCreate(t, store, claiming("one", "x"))
	_, err := store.Create(t.Context(), sample("one"))
	wantError(t, "Create", err, relayer.ErrExists)
	changed := made
	changed.Document, changed.Private, changed.Claim, changed.Terms = []byte(`{"changed":1}`), nil, "y", []string{"new"}
	changed = mustUpdate(t, store, changed)
	_, err = store.Update(t.Context(), made)
	wantError(t, "Update", err, relayer.ErrConflict)
	other := mustCreate(t, store, sample("two"))
	mustDelete(t, store, changed)
	again := mustCreate(t, store, sample("one"))
	for _, w := range []watcher{first, second} {
		w.want(t, relayer.ChangeCreated, made, relayer.Record{})
		w.want(t, relayer.ChangeUpdated, changed, made)
		w.want(t, relayer.ChangeCreated, other, relayer.Record{})
		w.want(t, relayer.ChangeDeleted, changed, changed)
		w.want(t, relayer.ChangeCreated, again, relayer.Record{})
	}
}

func watchBeginsWithCall(t *testing.T, store relayer.Store) {
	for _, rec := range createMany(t, store, 3) {
		w := watch(t, store)
		rec.Terms = nil
		changed := mustUpdate(t, store, rec)
		w.want(t, relayer.ChangeUpdated, changed, sample(rec.ID))
		mustDelete(t, store, changed)
		w.want(t, relayer.ChangeDeleted, changed, changed)
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
		if err != nil || !ok {
			t.Fatalf("Watch: error %v, ended is %t, want a create or %v", err, !ok, relayer.ErrGap)
		}
		wantChange(t, change, relayer.RecordChange{Kind: relayer.ChangeCreated, Record: rec})
	}
}

// follower computes selections from changes, as a client that follows one does.
type follower struct {
	queries []relayer.StoreQuery // the first selects all
	held    []map[string]relayer.Record
	latest  map[string]uint64 // last revision by ID
}

func newFollower() *follower {
	f := &follower{latest: make(map[string]uint64), queries: []relayer.StoreQuery{
		{},
		{Terms: [][]string{{"a"}}},
		{Terms: [][]string{{"a", "b"}, {"c"}}},
		{Terms: [][]string{{"d"}}, IDs: []string{numbered(0), numbered(2)}},
	}}
	for i := range f.queries {
		f.queries[i].Limit = 1000
		f.held = append(f.held, make(map[string]relayer.Record))
	}
	return f
}

// read replaces what the follower holds with what the store returns.
func (f *follower) read(t *testing.T, store relayer.Store) {
	t.Helper()
	for i, query := range f.queries {
		page, _, err := store.List(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		clear(f.held[i])
		for _, rec := range page {
			f.held[i][rec.ID] = rec
			f.latest[rec.ID] = rec.Revision
		}
	}
}

// apply fails if the change does not follow those before it.
func (f *follower) apply(t *testing.T, change relayer.RecordChange) {
	t.Helper()
	rec := change.Record
	before, isHeld := f.held[0][rec.ID]
	latest := f.latest[rec.ID]
	if isHeld == (change.Kind == relayer.ChangeCreated) || !slices.Equal(change.OldTerms, before.Terms) ||
		rec.Revision < latest || rec.Revision == latest && change.Kind != relayer.ChangeDeleted {
		t.Fatalf("Watch: %s %q at %d with the old terms %q, after revision %d, stored is %t, terms %q",
			change.Kind, rec.ID, rec.Revision, change.OldTerms, latest, isHeld, before.Terms)
	}
	f.latest[rec.ID] = rec.Revision
	for i, query := range f.queries {
		switch {
		case change.Kind != relayer.ChangeDeleted && selects(query, rec):
			f.held[i][rec.ID] = rec
		case change.Kind != relayer.ChangeCreated && selects(query, relayer.Record{ID: rec.ID, Terms: change.OldTerms}):
			delete(f.held[i], rec.ID)
		}
	}
}

// want fails unless the follower holds exactly what the store returns.
func (f *follower) want(t *testing.T, store relayer.Store) {
	t.Helper()
	for i, query := range f.queries {
		page, total, err := store.List(t.Context(), query)
		if err != nil || total != len(f.held[i]) || len(page) != total {
			t.Fatalf("%+v selects %d of %d records, and by the changes %d; error %v", query, len(page), total, len(f.held[i]), err)
		}
		for _, rec := range page {
			wantSame(t, "the changes", f.held[i][rec.ID], rec)
		}
	}
}

// watchFollowsSelections follows selections during concurrent writes, in several rounds.
// It resumes now and then, and also at an unknown position, which is a gap.
func watchFollowsSelections(t *testing.T, store relayer.Store) {
	const rounds, writers, writes, ids = 6, 6, 30, 5
	random := newRandom(t)
	f, w := newFollower(), watch(t, store)
	for round := range rounds {
		written := make(chan error, 1)
		end := sample(fmt.Sprint("end-", round))
		go func() {
			errs := race(writers, func(writer int) error {
				for i := range writes {
					if err := writeAny(t.Context(), store, numbered((writer+i)%ids), i); err != nil {
						return err
					}
				}
				return nil
			})
			_, err := store.Create(t.Context(), end)
			written <- errors.Join(append(errs, err)...)
		}()
		isGap := false
		for received := 1; ; received++ {
			change, err, ok := w.next()
			if isGap = errors.Is(err, relayer.ErrGap); isGap {
				break
			}
			if err != nil || !ok {
				t.Fatalf("Watch: error %v, ended is %t", err, !ok)
			}
			f.apply(t, change)
			if change.Record.ID == end.ID {
				break
			}
			if change.Position != "" && random.IntN(10) == 0 {
				w.stop()
				w = watchAfter(t, store, change.Position)
			}
			if round%2 == 1 && received == writes {
				w.stop()
				w = watchAfter(t, store, "unknown")
			}
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		if isGap {
			w.stop()
			w = watch(t, store)
			f.read(t, store)
		}
		f.want(t, store)
	}
}

// writeAny creates, updates or deletes a record. An update sets a term that no other write
// sets. Losing a race is not an error.
func writeAny(ctx context.Context, store relayer.Store, id string, i int) error {
	rec, err := store.Get(ctx, id)
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		_, err = store.Create(ctx, sample(id))
	case err == nil && i%4 == 0:
		err = store.Delete(ctx, id, rec.Revision)
	case err == nil:
		rec.Document = fmt.Appendf(nil, `{"i":%d}`, i)
		rec.Terms = append(randomTerms(rand.New(rand.NewPCG(rand.Uint64(), 0))), fmt.Sprintf("n=%d", rand.Uint64()))
		_, err = store.Update(ctx, rec)
	}
	if matchesAny(err, []error{relayer.ErrExists, relayer.ErrConflict, relayer.ErrNotFound}) {
		return nil
	}
	return err
}

func watchEndsWithContext(t *testing.T, store relayer.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	changes := store.Watch(ctx, "")
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
	w := watch(t, store)
	mustClose(t, store)
	for _, w := range []watcher{w, watch(t, store)} {
		w.wantEnd(t, "Watch of a closed store", relayer.ErrUnavailable)
	}
}
