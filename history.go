package relayer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Revision is one change in the history of a relayer.
type Revision struct {
	// Revision is the revision that the change made.
	Revision uint64

	// ID is the ID of the relayer.
	ID string

	// Note says who made the change, when and why, and what it changed.
	Note

	// Relayer is the relayer after the change, with masked RPC URLs. It is nil if the relayer
	// was deleted, if the selector of [Manager.Within] does not select it any more, and if its
	// document cannot be decoded, which is logged.
	Relayer *Relayer
}

// defaultHistoryLimit is the [HistoryQuery.Limit] of a [Manager] if it is 0.
const defaultHistoryLimit = 20

// History returns changes of the past, newest first, as far as the store retains them, also of
// a relayer that was deleted. Next is the [HistoryQuery.Before] of the next page, or 0 if no
// changes follow. Limit is lowered to the maximum of pages (see [WithMaxPerPage]). Changes that
// are damaged in the store are left out. It returns [ErrNotFound] if the ID has no history, and
// an error that matches [errors.ErrUnsupported] if the store retains none.
//
// A view of [Manager.Within] has the changes of relayers that it selected before or after
// the change. Without an ID a call examines about 1,000 changes at most, so that its page can
// have fewer than the limit, or none, although next is not 0.
func (m *Manager) History(ctx context.Context, query HistoryQuery) (revisions []Revision, next uint64, err error) {
	revisions, err = observe(ctx, m.observers, query.action(), query.ID, func(ctx context.Context) (page []Revision, err error) {
		var found []pastChange
		found, next, err = m.history(ctx, query)
		for _, c := range found {
			decoded, err := decodedPast(c.Record)
			if err != nil {
				return nil, err
			}
			note := decodeNote(c.Record.Note)
			note.Changed = c.changed
			page = append(page, Revision{c.Record.Revision, c.Record.ID, note, decoded})
		}
		return page, err
	})
	return revisions, next, err
}

// action returns what a query is for observers.
func (q HistoryQuery) action() Action {
	if q.ID == "" {
		return ActionList
	}
	return ActionGet
}

// pastChange is a change as a caller of a history sees it. Its record has no document after a
// delete, if it is not selected, and if its document is no JSON.
type pastChange struct {
	RecordChange
	changed []string
}

// history returns the changes of a page, and the Before of the next one.
func (m *Manager) history(ctx context.Context, query HistoryQuery) (page []pastChange, next uint64, err error) {
	if query.ID != "" && !IsID(query.ID) {
		return nil, 0, ErrNotFound
	}
	if query.Limit < 0 {
		return nil, 0, invalidAs("per_page", strictjson.OutOfRange, "must be 0 or more")
	}
	if query.Limit == 0 {
		query.Limit = defaultHistoryLimit
	}
	limit := min(query.Limit, m.maxPerPage)
	query.Limit = limit + 1 // shows whether more follow
	found, err := m.store.History(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	if last := len(found) - 1; last >= 0 && found[last].Kind == ChangeHeartbeat {
		found, next = found[:last], found[last].Record.Revision
	}
	if len(found) == 0 && query.ID != "" && query.Before == 0 {
		return nil, 0, ErrNotFound
	}
	for i, c := range found[:min(limit, len(found))] {
		change, err := m.pastChange(ctx, c, found[i+1:])
		if errors.Is(err, ErrCorrupt) && i > 0 {
			return page, page[i-1].Record.Revision, nil // the next page returns the error
		}
		if err != nil {
			return nil, 0, err
		}
		page = append(page, change)
	}
	if len(found) > limit {
		next = page[limit-1].Record.Revision
	}
	return page, next, nil
}

// pastChangeOf returns the change as the history of the selection has it: without the document
// if it is not selected after the change.
func (s Selector) pastChangeOf(c RecordChange) (_ RecordChange, isVisible bool) {
	_, isVisible = s.changeOf(c)
	if !s.selects(c.Record) {
		c.Record.Document = nil
	}
	return c, isVisible
}

// pastChange returns the change with what it changed. Older are the changes before it.
func (m *Manager) pastChange(ctx context.Context, c RecordChange, older []RecordChange) (pastChange, error) {
	if c.Kind == ChangeDeleted {
		c.Record.Document = nil
	}
	if c.Record.Document == nil {
		return pastChange{RecordChange: c}, nil
	}
	if !isObject(c.Record.Document) {
		return pastChange{}, damagedChange(c.Record, errors.New("it is not a JSON object"))
	}
	changed, err := m.changedBy(ctx, c, older)
	return pastChange{c, changed}, err
}

// decodedPast returns nil if the record has no document.
func decodedPast(rec Record) (*Relayer, error) {
	if rec.Document == nil {
		return nil, nil
	}
	decoded, err := maskedRelayerOf(rec)
	if err != nil {
		return nil, damagedChange(rec, err)
	}
	return decoded, nil
}

func damagedChange(rec Record, err error) error {
	return &CorruptError{ID: rec.ID, Sequence: rec.Sequence, Err: fmt.Errorf("relayer: the document of revision %d of %s cannot be decoded: read the history before that revision: %w", rec.Revision, rec.ID, err)}
}

// changedBy returns the paths of what an update changed, or none if that is unknown.
func (m *Manager) changedBy(ctx context.Context, c RecordChange, older []RecordChange) ([]string, error) {
	if c.Kind == ChangeCreated {
		return nil, nil
	}
	before, err := m.changeBefore(ctx, c, older)
	if _, isDecodable := strictjson.Members(before.Record.Document); !isDecodable {
		return nil, err
	}
	changed := changedPaths(before.Record, c.Record)
	if changesURLs(c.Record.Note) && !slices.Contains(changed, urlsMember) {
		changed = append(changed, urlsMember)
		slices.Sort(changed)
	}
	return changed, nil
}

// changeBefore returns the change of the same record before c, or the zero change if it is
// no longer retained or cannot be read.
func (m *Manager) changeBefore(ctx context.Context, c RecordChange, older []RecordChange) (RecordChange, error) {
	i := slices.IndexFunc(older, func(before RecordChange) bool { return before.Record.ID == c.Record.ID })
	if i >= 0 {
		return older[i], nil
	}
	found, err := m.store.History(ctx, HistoryQuery{ID: c.Record.ID, Before: c.Record.Revision, Limit: 1})
	if errors.Is(err, ErrCorrupt) {
		return RecordChange{}, nil
	}
	if err != nil || len(found) == 0 {
		return RecordChange{}, err
	}
	return found[0], nil
}
