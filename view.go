package relayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// view is a [Store] that has only the records that a selector selects.
type view struct {
	Store
	selector Selector
	scope    Selector // the part of the selector that limits the access of the caller
}

// within returns a store that has the records of another one that the selector selects. A scope
// limits the access of the caller.
func within(store Store, selector Selector, isScope bool) Store {
	if selector.IsZero() {
		return store
	}
	v, isView := store.(view)
	if !isView {
		v.Store = store
	}
	if v.selector = v.selector.And(selector); isScope {
		v.scope = v.selector
	}
	return v
}

// withoutMove removes what a change changed from its note if the change may have moved the record
// into the selection: the paths would show which fields the record had before.
func (s Selector) withoutMove(note []byte) []byte {
	isNamed := func(t selectorTerm) bool { return bytes.Contains(note, []byte(t.member())) }
	if !slices.ContainsFunc(s.terms, isNamed) {
		return note // faster than decoding it
	}
	paths := noteInfo(note).Changed
	mayMove := func(t selectorTerm) bool {
		return slices.Contains(paths, t.field()) || slices.Contains(paths, t.member())
	}
	if slices.ContainsFunc(s.terms, mayMove) {
		return withoutPaths(note)
	}
	return note
}

// Get returns [ErrNotFound] for a damaged record, which may be outside of the view.
func (v view) Get(ctx context.Context, id string) (Record, error) {
	if err := v.selector.Err(); err != nil {
		return Record{}, err
	}
	rec, err := v.Store.Get(ctx, id)
	if errors.Is(err, ErrCorrupt) || err == nil && !v.selector.selects(rec) {
		return Record{}, ErrNotFound
	}
	rec.Note = v.scope.withoutMove(rec.Note)
	return rec, err
}

func (v view) List(ctx context.Context, query StoreQuery) (Listing, error) {
	if err := v.selector.Err(); err != nil {
		return Listing{}, err
	}
	listing, err := v.Store.List(ctx, v.selector.narrow(query))
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return Listing{}, err
	}
	for i, rec := range listing.Records {
		// A defect of a store must not reveal other relayers.
		if !v.selector.selects(rec) {
			return Listing{}, fmt.Errorf("relayer: the store returned a relayer that is not selected by %s", v.selector)
		}
		listing.Records[i].Note = v.scope.withoutMove(rec.Note)
	}
	listing.Position = v.selector.bind(listing.Position)
	return listing, err
}

func (v view) Create(ctx context.Context, rec Record) (Record, error) {
	if err := v.selector.checkScope(rec); err != nil {
		return Record{}, err
	}
	return v.Store.Create(ctx, rec)
}

func (v view) Update(ctx context.Context, rec Record) (Record, error) {
	if err := v.selector.checkScope(rec); err != nil {
		return Record{}, err
	}
	return v.Store.Update(ctx, rec)
}

// Watch binds positions to the selection: changes that it skips would be missing in another one.
func (v view) Watch(ctx context.Context, after string) iter.Seq2[RecordChange, error] {
	position, isOfSelection := strings.CutSuffix(after, v.selector.mark())
	err := v.selector.Err()
	if err == nil && after != "" && !isOfSelection {
		err = ErrGap
	}
	if err != nil {
		return func(yield func(RecordChange, error) bool) { yield(RecordChange{}, err) }
	}
	return v.changesOf(v.Store.Watch(ctx, position))
}

// History has a heartbeat with the revision in place of a change that the view does not have.
func (v view) History(ctx context.Context, query HistoryQuery) ([]RecordChange, error) {
	if err := v.selector.Err(); err != nil {
		return nil, err
	}
	changes, err := v.Store.History(ctx, query)
	for i, c := range changes {
		changes[i] = v.selector.pastChangeOf(c)
		// Sealing under another key repeats the note of a change that may have moved the relayer here.
		changes[i].Record.Note = v.scope.withoutMove(changes[i].Record.Note)
	}
	return changes, err
}

// pastChangeOf removes from a change what the history of the selection does not have: the
// document if it is not selected after the change, and the paths unless it is selected before
// and after. A change is a heartbeat if it is selected neither before nor after.
func (s Selector) pastChangeOf(c RecordChange) RecordChange {
	is, was := s.selectsChange(c)
	if !is && !was {
		return RecordChange{Kind: ChangeHeartbeat, Record: Record{Revision: c.Record.Revision}}
	}
	if !is {
		c.Record.Document = nil
	}
	if !is || !was {
		c.Record.Note = withoutPaths(c.Record.Note)
	}
	return c
}

// selectsChange reports whether the selector selects the relayer after a change, and before it.
func (s Selector) selectsChange(c RecordChange) (is, was bool) {
	is = c.Kind != ChangeDeleted && s.selects(c.Record)
	was = c.Kind != ChangeCreated && s.selects(Record{ID: c.Record.ID, Terms: c.OldTerms, Text: c.OldText})
	return is, was
}

// skippedInterval is the time after which a change that the selection skips becomes a
// heartbeat, so that the position and the time of a consumer advance in a busy feed.
const skippedInterval = time.Second

// changesOf returns the changes as a consumer of the selection sees them.
func (v view) changesOf(changes iter.Seq2[RecordChange, error]) iter.Seq2[RecordChange, error] {
	return func(yield func(RecordChange, error) bool) {
		var last time.Time // of the last element that was yielded
		for change, err := range changes {
			isSelected := true
			if err == nil && change.Kind != ChangeHeartbeat {
				change, isSelected = v.selector.changeOf(change)
				change.Record.Note = v.scope.withoutMove(change.Record.Note) // as in gets and lists
			}
			if !isSelected {
				if change.Time.Sub(last) < skippedInterval {
					continue
				}
				change = RecordChange{Kind: ChangeHeartbeat, Position: change.Position, Time: change.Time}
			}
			last, change.Position = change.Time, v.selector.bind(change.Position)
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// changeOf returns the change as a consumer of the selection sees it, or false if the consumer
// does not see it.
func (s Selector) changeOf(c RecordChange) (_ RecordChange, isSelected bool) {
	is, was := s.selectsChange(c)
	switch {
	case is && !was && c.Kind == ChangeUpdated:
		c.Kind = ChangeCreated
	case was && !is && c.Kind == ChangeUpdated:
		c.Kind = ChangeDeleted
		c.Record = Record{ID: c.Record.ID, Revision: c.Record.Revision}
	}
	return c, is || was
}

// dryRun is a [Store] that checks writes and stores nothing.
type dryRun struct{ Store }

// withoutWrites returns a store that checks the writes of another one.
func withoutWrites(store Store) Store {
	if v, isView := store.(view); isView {
		v.Store = dryRun{v.Store}
		return v
	}
	return dryRun{store}
}

// Create returns the errors of a create for the ID and the claim.
func (d dryRun) Create(ctx context.Context, rec Record) (Record, error) {
	_, err := d.Get(ctx, rec.ID)
	if err == nil || errors.Is(err, ErrCorrupt) {
		return Record{}, ErrExists
	}
	if !errors.Is(err, ErrNotFound) {
		return Record{}, err
	}
	if rec.Claim == "" {
		return rec, nil
	}
	query := StoreQuery{Terms: [][]string{{recordTerm(claimTerm, rec.Claim)}}, Limit: 1}
	for {
		held, err := d.List(ctx, query)
		if len(held.Records) > 0 {
			return rec, ErrClaimed
		}
		corrupt, isDamaged := errors.AsType[*CorruptError](err) // it may be selected by any term
		if !isDamaged || corrupt.Sequence <= query.After {
			return rec, err
		}
		query.After = corrupt.Sequence
	}
}

func (d dryRun) Update(_ context.Context, rec Record) (Record, error) { return rec, nil }

func (d dryRun) Delete(context.Context, string, uint64, []byte) error { return nil }
