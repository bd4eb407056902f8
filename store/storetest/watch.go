package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// patience is how long a case waits for one element of a watch.
var patience = 10 * time.Second

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

// next returns the next change. It skips heartbeats, and ends the watch if no change
// arrives in time.
func (w watcher) next() (relayer.RecordChange, error, bool) {
	defer time.AfterFunc(patience, w.end).Stop()
	for {
		if change, err, ok := w.pull(); !ok || err != nil || change.Kind != relayer.ChangeHeartbeat {
			return change, err, ok
		}
	}
}

// want expects a create or an update of what was old before it.
func (w watcher) want(t *testing.T, kind relayer.ChangeKind, rec, old relayer.Record) {
	t.Helper()
	change, err, ok := w.next()
	if err != nil || !ok {
		t.Fatalf("Watch: error %v, ended is %t, want %s %q", err, !ok, kind, rec.ID)
	}
	wantChange(t, change, relayer.RecordChange{Kind: kind, Record: rec, OldTerms: old.Terms, OldText: old.Text})
}

// wantDeleted expects a delete with a later revision than that of the deleted record, and
// returns it.
func (w watcher) wantDeleted(t *testing.T, rec relayer.Record) (revision uint64) {
	t.Helper()
	change, err, ok := w.next()
	if err != nil || !ok {
		t.Fatalf("Watch: error %v, ended is %t, want the delete of %q", err, !ok, rec.ID)
	}
	if change.Record.Revision <= rec.Revision {
		t.Fatalf("the delete of %q has the revision %d, which is not after %d", rec.ID, change.Record.Revision, rec.Revision)
	}
	rec.Revision, rec.Note = change.Record.Revision, deleteNote
	wantChange(t, change, relayer.RecordChange{Kind: relayer.ChangeDeleted, Record: rec, OldTerms: rec.Terms, OldText: rec.Text})
	return rec.Revision
}

func wantChange(t *testing.T, got, want relayer.RecordChange) {
	t.Helper()
	if got.Kind != want.Kind {
		t.Fatalf("Watch: %s %q, want %s %q", got.Kind, got.Record.ID, want.Kind, want.Record.ID)
	}
	if len(got.Record.Private) == 0 {
		want.Record.Private = nil // it need not be retained
	}
	wantSame(t, "Watch", got.Record, want.Record)
	if !slices.Equal(got.OldTerms, want.OldTerms) {
		t.Fatalf("Watch: %s %q has the old terms %q, want %q", got.Kind, got.Record.ID, got.OldTerms, want.OldTerms)
	}
	if got.OldText != want.OldText {
		t.Fatalf("Watch: %s %q has the old text %q, want %q", got.Kind, got.Record.ID, got.OldText, want.OldText)
	}
}

// wantSameChange compares a change with that of another watch, which may have read it when the
// store no longer retained its private part.
func wantSameChange(t *testing.T, got, other relayer.RecordChange) {
	t.Helper()
	if len(other.Record.Private) == 0 {
		got.Record.Private = nil
	}
	wantChange(t, got, other)
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
	changed.Text, changed.Note = "new", []byte("new")
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
		w.wantDeleted(t, changed)
		change, err, _ := w.next()
		if err != nil {
			t.Fatalf("Watch: %v", err)
		}
		wantSame(t, "Watch", change.Record, again) // with its private part: it is the last change
	}
}

func watchBeginsWithCall(t *testing.T, store relayer.Store) {
	for _, rec := range createMany(t, store, 3) {
		w := watch(t, store)
		rec.Terms = nil
		changed := mustUpdate(t, store, rec)
		w.want(t, relayer.ChangeUpdated, changed, sample(rec.ID))
		mustDelete(t, store, changed)
		w.wantDeleted(t, changed)
	}
}

// watchReportsImports accepts either the records or ErrGap.
func watchReportsImports(t *testing.T, store relayer.Store) {
	w := watch(t, store)
	all := moved("m", 3)
	mustImport(t, store, all)
	mustCreate(t, store, sample("later")) // so that a missing change is found without a wait
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

// view has what a query selects: those of a list, and the changes after it.
type view struct {
	query relayer.StoreQuery // without a page
	held  map[string]relayer.Record
}

// selections are queries by terms, text and ID that writeAny changes.
func selections() []*view {
	var views []*view
	for _, query := range []relayer.StoreQuery{
		{},
		{Terms: [][]string{{"a"}}},
		{Terms: [][]string{{"a", "b"}, {"c"}}},
		{Terms: [][]string{{"d"}}, IDs: []string{numbered(0), numbered(2)}},
		{Contains: []string{"7", "of"}},
		{Contains: []string{"1"}, Terms: [][]string{{"b"}}},
	} {
		views = append(views, &view{query, make(map[string]relayer.Record)})
	}
	return views
}

func (v *view) list(ctx context.Context, store relayer.Store) (relayer.Listing, error) {
	query := v.query
	query.Limit = math.MaxInt
	return store.List(ctx, query)
}

// read replaces what the view holds with a list, and returns its position.
func (v *view) read(ctx context.Context, store relayer.Store) (string, error) {
	page, err := v.list(ctx, store)
	if err != nil {
		return "", err
	}
	clear(v.held)
	for _, rec := range page.Records {
		v.held[rec.ID] = rec
	}
	return page.Position, nil
}

// apply returns an error if the change does not follow what the view holds.
func (v *view) apply(change relayer.RecordChange) error {
	rec := change.Record
	old := relayer.Record{ID: rec.ID, Terms: change.OldTerms, Text: change.OldText}
	held, isHeld := v.held[rec.ID]
	wasSelected := change.Kind != relayer.ChangeCreated && selects(v.query, old)
	isNext := !isHeld || rec.Revision > held.Revision && slices.Equal(old.Terms, held.Terms) && old.Text == held.Text
	if isHeld != wasSelected || !isNext {
		return fmt.Errorf("%+v: %s %q at %d with the old terms %q and the old text %q follows %d, %q, %q (selected: %t)",
			v.query, change.Kind, rec.ID, rec.Revision, old.Terms, old.Text, held.Revision, held.Terms, held.Text, isHeld)
	}
	delete(v.held, rec.ID)
	if change.Kind != relayer.ChangeDeleted && selects(v.query, rec) {
		v.held[rec.ID] = rec
	}
	return nil
}

// check returns an error unless the view holds exactly what the store returns.
func (v *view) check(ctx context.Context, store relayer.Store) error {
	page, err := v.list(ctx, store)
	if err != nil || page.Total != len(v.held) || len(page.Records) != page.Total {
		return fmt.Errorf("%+v selects %d of %d records, and by the changes %d; error %v", v.query, len(page.Records), page.Total, len(v.held), err)
	}
	for _, rec := range page.Records {
		if diff := difference(v.held[rec.ID], rec); diff != "" {
			return fmt.Errorf("%+v: by the changes: %s", v.query, diff)
		}
	}
	return nil
}

// watchFollowsSelections follows selections during concurrent writes, in several rounds.
// It resumes now and then, and also at an unknown position, which is a gap.
func watchFollowsSelections(t *testing.T, store relayer.Store) {
	const rounds, writers, writes, ids = 6, 6, 30, 5
	random := newRandom(t)
	views, w, latest := selections(), watch(t, store), uint64(0)
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
			if change.Record.Revision <= latest {
				t.Fatalf("Watch: revision %d after %d", change.Record.Revision, latest)
			}
			latest = change.Record.Revision
			eachView(t, views, func(v *view) error { return v.apply(change) })
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
			eachView(t, views, func(v *view) error {
				_, err := v.read(t.Context(), store)
				return err
			})
		}
		eachView(t, views, func(v *view) error { return v.check(t.Context(), store) })
	}
}

func eachView(t *testing.T, views []*view, call func(*view) error) {
	t.Helper()
	for _, v := range views {
		if err := call(v); err != nil {
			t.Fatal(err)
		}
	}
}

// writeAny creates, updates or deletes a record. An update sets a term and a text that no
// other write sets. Losing a race is not an error.
func writeAny(ctx context.Context, store relayer.Store, id string, i int) error {
	rec, err := store.Get(ctx, id)
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		_, err = store.Create(ctx, sample(id))
	case err == nil && i%4 == 0:
		err = store.Delete(ctx, id, rec.Revision, deleteNote)
	case err == nil:
		rec.Document = fmt.Appendf(nil, `{"i":%d}`, i)
		rec.Terms = append(randomTerms(rand.New(rand.NewPCG(rand.Uint64(), 0))), fmt.Sprintf("n=%d", rand.Uint64()))
		rec.Text, rec.Note = fmt.Sprint(rand.Uint64()), fmt.Appendf(nil, "note %d", i)
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
