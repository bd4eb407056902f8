package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

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

// listThenWatch lists and then follows the changes from the position of the list, again and
// again, during the writes of many: no change is missing, and none is in the list too. After the
// writes it follows the last list of each view, which must not have a gap, and compares the view.
func listThenWatch(t *testing.T, store relayer.Store) {
	const writers, ids, fewest, most, lists = 16, 6, 10, 1500, 80
	var listed atomic.Int64
	written := startWriters(t, store, writers, func(writer int) error {
		for i := 0; i < fewest || i < most && listed.Load() < lists; i++ {
			if err := writeAny(t.Context(), store, numbered((writer+i)%ids), i); err != nil {
				return err
			}
		}
		return nil
	})
	views := selections()
	positions := make([]string, len(views))
	errs := race(len(views), func(i int) (err error) {
		defer listed.Store(lists) // so that the writers end, also after an error
		for isLast := false; !isLast && err == nil; {
			isLast = listed.Add(1) > lists // the writers end, so few changes follow
			positions[i], err = views[i].read(t.Context(), store)
			if _, missing := store.Get(t.Context(), "end"); missing == nil {
				listed.Store(lists) // this list may have it, so no change comes, and the next is the last
			} else if err == nil && !isLast {
				if err = views[i].follow(t.Context(), store, positions[i], "end", rand.IntN(40)); errors.Is(err, relayer.ErrGap) {
					err = nil
				}
			}
		}
		return err
	})
	must(t, errors.Join(append(errs, <-written)...))
	mustCreate(t, store, sample("last"))
	for i, v := range views {
		must(t, v.follow(t.Context(), store, positions[i], "last", math.MaxInt))
		must(t, v.check(t.Context(), store))
	}
}

// follow applies a number of changes after a position, or those up to the create of the last record.
func (v *view) follow(ctx context.Context, store relayer.Store, position, last string, changes int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer, latest := time.AfterFunc(patience, cancel), uint64(0)
	defer timer.Stop()
	for change, err := range store.Watch(ctx, position) {
		if err != nil {
			return err
		}
		if change.Kind == relayer.ChangeHeartbeat {
			continue
		}
		timer.Reset(patience)
		if change.Record.Revision <= latest {
			return fmt.Errorf("revision %d after %d", change.Record.Revision, latest)
		}
		latest = change.Record.Revision
		if err := v.apply(change); err != nil {
			return err
		}
		if changes--; changes <= 0 || change.Record.ID == last {
			return nil
		}
	}
	return fmt.Errorf("%+v: no change within %s", v.query, patience)
}
