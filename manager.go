package relayer

import (
	"errors"
	"slices"
)

// Manager is the registry of relayers. All its methods are safe for concurrent use.
//
// A Manager keeps all relayers in a [Store], which the host opens and closes.
// Several Managers may share a store.
type Manager struct {
	store  Store  // limited to the selection of a view
	opener Opener // nil unless the store is an Opener
	settings
}

// New returns a Manager that keeps its relayers in store. It returns an error if store is nil
// or an option is invalid.
func New(store Store, options ...Option) (*Manager, error) {
	if store == nil {
		return nil, errors.New("relayer: store is nil")
	}
	s, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	opener, _ := store.(Opener)
	return &Manager{store: store, opener: opener, settings: s}, nil
}

// Within returns a view of the relayers that the selector selects, with the same store and
// options. To the view, the other relayers do not exist: a get or a change by their IDs returns
// [ErrNotFound]. A record that the store cannot read may be outside, so its ID returns
// ErrNotFound too; List, All and Check return its [*CorruptError]. A write that would create a
// relayer outside of the selection, or move one out of it, returns a [*ValidationError]. IDs
// remain unique in the store, so a create returns [ErrExists] for the ID of any relayer. Views of
// views intersect.
//
// The selector must be valid and have no search; otherwise every operation of the view
// returns an error.
func (m *Manager) Within(selector Selector) *Manager {
	view := *m
	if slices.ContainsFunc(selector.terms, func(t selectorTerm) bool { return t.key == keySearch }) {
		selector = Selector{err: invalid(keySearch, "must not be part of a selector of a view")}
	}
	view.store = within(m.store, selector, true)
	return &view
}
