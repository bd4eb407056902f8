package relayer

import (
	"context"
	"errors"
)

// Create adds a relayer and returns it as stored. It returns a
// [*ValidationError] with every problem of the request, and [ErrExists] if the ID
// is taken. When it returns nil, the relayer is as durable as the store makes it.
func (m *Manager) Create(ctx context.Context, req CreateRequest, options ...WriteOption) (*Relayer, error) {
	r := newRelayer(req)
	return observeWrite(ctx, m, ActionCreate, &r.ID, options, func(ctx context.Context, w *write) (*Relayer, error) {
		rec, err := m.create(ctx, r, new(problems), w)
		if err != nil {
			return nil, err
		}
		return w.relayer(m, rec)
	})
}

// create stores a new relayer and sets its ID and address. Its problems are
// returned together with those found before.
func (m *Manager) create(ctx context.Context, r *Relayer, found *problems, w *write) (Record, error) {
	if err := m.scope.Err(); err != nil {
		return Record{}, err
	}
	checkMasks(r, new(Relayer), found)
	m.scope.checkScope(scopedPart(r), found)
	rec, err := m.prepare(ctx, r, found)
	if err != nil {
		return Record{}, err
	}
	if rec, err = m.seal(ctx, rec); err != nil {
		return Record{}, err
	}
	if err := m.checkSize(rec, Record{}); err != nil {
		return Record{}, err
	}
	if err := m.admit(ctx, ActionCreate, Record{}, rec, w.DryRun); err != nil {
		return Record{}, err
	}
	if w.DryRun {
		return w.unnoted(Record{}, rec), m.checkCreate(ctx, rec)
	}
	rec.Note = w.note(ctx, Record{}, rec)
	created, err := m.store.Create(ctx, rec)
	if errors.Is(err, ErrClaimed) {
		return Record{}, claimedError()
	}
	if err != nil {
		return Record{}, err
	}
	w.replaces(Record{}, created)
	return created, nil
}

// checkCreate returns the error that the store would return for a create.
func (m *Manager) checkCreate(ctx context.Context, rec Record) error {
	_, err := m.store.Get(ctx, rec.ID)
	if err == nil || errors.Is(err, ErrCorrupt) {
		return ErrExists
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if rec.Claim == "" {
		return nil
	}
	held, err := m.store.List(ctx, StoreQuery{Terms: [][]string{{recordTerm(claimTerm, rec.Claim)}}})
	if err == nil && held.Total > 0 {
		err = claimedError()
	}
	return err
}

func claimedError() error {
	return invalid("signer_id", "is used by another relayer on this network: choose another signer")
}
