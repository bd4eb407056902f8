package relayer

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
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
	revisions, err = observe(ctx, &m.observing, query.action(), query.ID, func(ctx context.Context) (page []Revision, err error) {
		var found []pastChange
		found, next, err = m.history(ctx, query)
		for _, c := range found {
			note := decodeNote(c.Record.Note)
			note.Changed = c.changed
			page = append(page, Revision{c.Record.Revision, c.Record.ID, note, m.decodedPast(ctx, c.Record)})
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
	if err := m.scope.Err(); err != nil {
		return nil, 0, err
	}
	if query.Limit == 0 {
		query.Limit = defaultHistoryLimit
	}
	limit := min(query.Limit, m.maxPerPage)
	found, next, err := m.visibleChanges(ctx, query, limit+1)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == 0 && query.ID != "" && query.Before == 0 {
		return nil, 0, ErrNotFound
	}
	for i, c := range found[:min(limit, len(found))] {
		change, err := m.pastChange(ctx, c, found[i+1:])
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

// maxHistoryScan bounds how many changes a view examines for one page of the history of all
// relayers: one that selects little must not read all changes. The changes of one relayer have
// no bound, because then the end of a page would show how many a relayer outside has.
const maxHistoryScan = 1000

// visibleChanges returns up to limit changes of the view. Next is not 0 if it has found fewer,
// because it has reached the bound.
func (m *Manager) visibleChanges(ctx context.Context, query HistoryQuery, limit int) (visible []RecordChange, next uint64, err error) {
	if query.Limit = limit; !m.scope.IsZero() {
		query.Limit = max(limit, 100)
	}
	for scanned := 0; len(visible) < limit; {
		found, err := m.store.History(ctx, query)
		if query.Before > 0 && errors.Is(err, ErrCorrupt) {
			m.logger.LogAttrs(ctx, slog.LevelError, "the rest of the history cannot be read", slog.String("error", mask.Text(err.Error())))
			break
		}
		if err != nil {
			return nil, 0, err
		}
		for _, c := range found {
			if _, isVisible := m.scope.changeOf(c); isVisible {
				visible = append(visible, c)
			}
		}
		if len(found) < query.Limit {
			break
		}
		query.Before = found[len(found)-1].Record.Revision
		if scanned += len(found); query.ID == "" && scanned >= maxHistoryScan && len(visible) < limit {
			return visible, query.Before, nil
		}
	}
	return visible[:min(limit, len(visible))], 0, nil
}

// pastChange returns the change as the view shows it. Older are the changes before it.
func (m *Manager) pastChange(ctx context.Context, c RecordChange, older []RecordChange) (pastChange, error) {
	if !m.scope.selects(c.Record) || c.Kind == ChangeDeleted {
		c.Record.Document = nil
		return pastChange{RecordChange: c}, nil
	}
	if !isObject(c.Record.Document) {
		m.logDamagedPast(ctx, c.Record, errors.New("the document is not a JSON object"))
		c.Record.Document = nil
		return pastChange{RecordChange: c}, nil
	}
	changed, err := m.changedBy(ctx, c, older)
	return pastChange{c, changed}, err
}

// decodedPast returns nil if the record has no document, or one that cannot be decoded: one
// damaged change hides no others.
func (m *Manager) decodedPast(ctx context.Context, rec Record) *Relayer {
	if rec.Document == nil {
		return nil
	}
	decoded, err := maskedRelayerOf(rec)
	if err != nil {
		m.logDamagedPast(ctx, rec, err)
		return nil
	}
	return decoded
}

func (m *Manager) logDamagedPast(ctx context.Context, rec Record, err error) {
	m.logger.LogAttrs(ctx, slog.LevelError, "a change of the history cannot be decoded",
		slog.String("relayer_id", rec.ID), slog.Uint64("revision", rec.Revision), slog.String("error", mask.Text(err.Error())))
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
	if i >= 0 && m.scope.IsZero() {
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
