package relayer

import (
	"context"
	"errors"
)

// Create adds a relayer and returns it as stored. It returns a
// [*ValidationError] with every problem of the request, and [ErrExists] if the ID
// is taken. When it returns nil, the relayer is as durable as the store makes it.
func (m *Manager) Create(ctx context.Context, req CreateRequest, options ...WriteOption) (*Relayer, error) {
	return create(ctx, m, newRelayer(req), func(*problems) bool { return true }, options, m.relayerOf)
}

// create stores a new relayer. Decode completes it, and reports false if its fields are unknown.
func create[T any](ctx context.Context, m *Manager, r *Relayer, decode func(*problems) bool, options []WriteOption, form form[T]) (T, error) {
	return observeWrite(ctx, m, ActionCreate, &r.ID, options, func(ctx context.Context, w *write) (created T, _ error) {
		found := new(problems)
		if !decode(found) {
			return created, found.err()
		}
		rec, err := m.create(ctx, r, found, w)
		if err != nil {
			return created, err
		}
		return form(ctx, rec)
	})
}

// create stores a new relayer and sets its ID and address. Its problems are
// returned together with those found before.
func (m *Manager) create(ctx context.Context, r *Relayer, found *problems, w *write) (Record, error) {
	checkMasks(r, new(Relayer), found)
	rec, err := m.prepare(ctx, r, found)
	if err != nil {
		return Record{}, err
	}
	if err := m.checkSize(rec, Record{}); err != nil {
		return Record{}, err
	}
	if err := m.admit(ctx, w, Record{}, rec); err != nil {
		return Record{}, err
	}
	rec.Note = w.createNote(ctx, rec)
	created, err := w.store.Create(ctx, rec)
	if errors.Is(err, ErrClaimed) {
		return Record{}, claimedError()
	}
	if err != nil {
		return Record{}, err
	}
	return w.created(created), nil
}

func claimedError() error {
	return invalid("signer_id", "is used by another relayer on this network: choose another signer")
}
