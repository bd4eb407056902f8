package relayer

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// defaultHistoryLimit is the [HistoryQuery.Limit] of a [Manager] if it is 0.
const defaultHistoryLimit = 20

// History returns changes of the past, newest first, as far as the store retains them. A deleted
// relayer keeps its history. Next is the [HistoryQuery.Before] of the next page, or 0 if no
// changes follow. Limit is lowered to the maximum of pages (see [WithMaxPerPage]). A page ends
// before a change that is damaged in the store; the page that begins with it is a
// [*CorruptError]. It returns [ErrNotFound] if the ID has no history, and an error that matches
// [errors.ErrUnsupported] if the store retains none.
//
// The relayer of a change is nil if the change deleted it, or if a view does not select it
// afterwards. Its RPC URLs are masked. A view of [Manager.Within] has the changes of relayers
// that it selected before or after the change. Without an ID, a call with a view or a filter
// examines about 1,000 changes at most, so that its page can have fewer than the limit, or none,
// although next is not 0.
func (m *Manager) History(ctx context.Context, query HistoryQuery) (changes []Change, next uint64, err error) {
	return history(ctx, m, query, pastChange)
}

func history[T any](ctx context.Context, m *Manager, query HistoryQuery, form func(RecordChange) (T, error)) (page []T, next uint64, err error) {
	page, err = observe(ctx, m.observers, query.action(), query.ID, func(ctx context.Context) (page []T, err error) {
		found, followsAt, err := m.pastChanges(ctx, query)
		if err != nil {
			return nil, err
		}
		next = followsAt
		for i, c := range found {
			change, err := form(c)
			if err == nil {
				page = append(page, change)
				continue
			}
			err = damagedChange(c.Record, err)
			if i > 0 {
				next, err = found[i-1].Record.Revision, nil // the next page returns the error
			}
			return page, err
		}
		return page, nil
	})
	return page, next, err
}

// action returns the action that observers get for a history.
func (q HistoryQuery) action() Action {
	if q.ID == "" {
		return ActionList
	}
	return ActionGet
}

// pastChanges returns the changes of a page, and the Before of the next one.
func (m *Manager) pastChanges(ctx context.Context, query HistoryQuery) (page []RecordChange, next uint64, err error) {
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
	store := m.store
	if query.isFiltered() {
		store = filteredHistory{store}
	}
	found, err := store.History(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	if last := len(found) - 1; last >= 0 && found[last].Kind == ChangeHeartbeat {
		found, next = found[:last], found[last].Record.Revision
	}
	if len(found) > limit {
		return found[:limit], found[limit-1].Record.Revision, nil
	}
	if len(found) == 0 && query.ID != "" && query.Before == 0 && !query.isFiltered() {
		return nil, 0, ErrNotFound
	}
	return found, next, nil
}

func pastChange(c RecordChange) (Change, error) {
	past := Change{Kind: c.Kind, ID: c.Record.ID, Info: changeInfoOf(c.Record)}
	past.Info.PausedBy = nil // it is not a part of this change
	if c.Kind == ChangeDeleted || c.Record.Document == nil {
		return past, nil
	}
	decoded, err := maskedRelayerOf(c.Record)
	if err == nil {
		decoded.LastChange = past.Info
	}
	past.Relayer = decoded
	return past, err
}

func damagedChange(rec Record, err error) error {
	return &CorruptError{ID: rec.ID, Sequence: rec.Sequence, Err: fmt.Errorf("relayer: the document of revision %d of %s cannot be decoded: read the history before that revision: %w", rec.Revision, rec.ID, err)}
}
