package relayer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// History returns changes of the past, newest first, as far as the store retains them. A deleted
// relayer keeps its history. Next is the [HistoryQuery.Before] of the next page, or 0 if no
// changes follow. Limit is lowered to the maximum of a page (see [WithMaxPerPage]). A page ends
// before a change that cannot be decoded, and the next call returns a [*CorruptError].
//
// History returns [ErrNotFound] for an invalid ID, and, without other conditions, for an ID
// without history. It returns an error that matches [errors.ErrUnsupported] if the store retains
// no history, and a [*ValidationError] if Limit is negative or Action is unknown.
//
// The relayer of a change is nil if the change deleted it, or if a view does not select it
// afterwards. Its RPC URLs are masked. A view of [Manager.Within] has the changes of relayers
// that it selected before or after the change. Without an ID, a call with a view or a filter
// examines about 1,000 changes, or Limit if that is more. So its page can be short or empty
// although next is not 0.
func (m *Manager) History(ctx context.Context, query HistoryQuery) (changes []Change, next uint64, err error) {
	return history(ctx, m, query, pastRelayer)
}

// history returns a page of changes. Complete sets what a change has besides its kind and ID.
func history(ctx context.Context, m *Manager, query HistoryQuery, complete func(RecordChange, *Change) error) (page []Change, next uint64, err error) {
	action := ActionList
	if query.ID != "" {
		action = ActionGet
	}
	page, err = observe(ctx, m.observers, action, query.ID, nil, func(ctx context.Context) (page []Change, err error) {
		found, followsAt, err := m.pastChanges(ctx, query)
		next = followsAt
		for i, c := range found {
			change := Change{Kind: c.Kind, ID: c.Record.ID}
			if err := complete(c, &change); err != nil {
				if i == 0 {
					err = fmt.Errorf("relayer: the document of revision %d of %s cannot be decoded: "+
						"read the history before that revision: %w", c.Record.Revision, change.ID, err)
					return nil, &CorruptError{ID: change.ID, Sequence: c.Record.Sequence, Err: err}
				}
				next = found[i-1].Record.Revision // the next page returns the error
				break
			}
			page = append(page, change)
		}
		return page, err
	})
	return page, next, err
}

// maxHistoryScan bounds how many changes are examined for one page of the history of all
// relayers: one that selects little must not read all changes. The changes of one relayer have
// no bound, because then the end of a page would show how many a relayer outside has.
const maxHistoryScan = 1000

// pastActions are the actions of changes.
var pastActions = []Action{ActionCreate, ActionUpdate, ActionPause, ActionResume, ActionDisable, ActionEnable, ActionDelete}

// pastChanges returns the changes of a page, and the Before of the next one.
func (m *Manager) pastChanges(ctx context.Context, query HistoryQuery) (page []RecordChange, next uint64, err error) {
	if query.ID != "" && !IsID(query.ID) {
		return nil, 0, ErrNotFound
	}
	if query.Limit < 0 {
		return nil, 0, invalidAs("per_page", strictjson.OutOfRange, "must be 0 or more")
	}
	if query.Action != "" && !slices.Contains(pastActions, query.Action) {
		return nil, 0, invalid("action", "must be create, update, pause, resume, disable, enable or delete")
	}
	limit := min(cmp.Or(query.Limit, 20), m.maxPerPage)
	isFirst := query.Before == 0
	query.Limit = limit + 1 // shows whether more follow
	for scanned, past, isLast := 0, 0, false; !isLast; query.Limit = max(query.Limit, 100) {
		found, err := m.store.History(ctx, query)
		if err != nil {
			return nil, 0, err
		}
		isLast = len(found) < query.Limit
		// A store may date only the oldest change of a page.
		if past += len(found); isLast || !query.isPast(found[len(found)-1]) {
			past = 0
		}
		for _, c := range found {
			query.Before = c.Record.Revision
			if c.Kind == ChangeHeartbeat || query.isPast(c) || !query.selects(changeInfoOf(c.Record)) {
				continue
			}
			if len(page) == limit {
				return page, page[limit-1].Record.Revision, nil
			}
			page = append(page, c)
		}
		if past > maxPast {
			return page, 0, nil
		}
		if scanned += len(found); !isLast && query.ID == "" && scanned >= maxHistoryScan {
			return page, query.Before, nil
		}
	}
	if len(page) == 0 && query.ID != "" && isFirst && !query.isFiltered() {
		return nil, 0, ErrNotFound
	}
	return page, 0, nil
}

func (q HistoryQuery) isFiltered() bool {
	return q.Actor != "" || q.Action != "" || !q.Since.IsZero() || !q.Until.IsZero()
}

func (q HistoryQuery) selects(info ChangeInfo) bool {
	return (q.Actor == "" || info.Actor == q.Actor) && (q.Action == "" || info.Action == q.Action) &&
		!info.Time.Before(q.Since) && (q.Until.IsZero() || info.Time.Before(q.Until))
}

// maxPast is the number of changes, in pages that end before [HistoryQuery.Since], that end a search:
// fewer can have the times of a clock that was behind.
const maxPast = 100

// isPast reports whether a change was made before the query begins, on clocks that differ by up to a
// minute. The time in the note does not show it: resealing repeats old notes.
func (q HistoryQuery) isPast(c RecordChange) bool {
	return !c.Time.IsZero() && c.Time.Before(q.Since.Add(-time.Minute))
}

func pastRelayer(c RecordChange, past *Change) (err error) {
	past.Info = changeInfoOf(c.Record)
	past.Info.PausedBy = nil // it is not a part of this change
	if c.Kind == ChangeDeleted || c.Record.Document == nil {
		return nil
	}
	if past.Relayer, err = maskedRelayerOf(c.Record); err == nil {
		past.Relayer.LastChange = past.Info
	}
	return err
}
