package relayer

import (
	"context"
	"errors"
)

// Delete removes the relayer. It returns [ErrNotFound], the error of an admission (see
// [WithAdmission]), or [ErrConflict] if a condition does not hold or contention exhausts
// the retries.
//
// It also removes a relayer whose stored data is damaged, if the store supports that and
// there is neither a condition nor an admission nor a selector of [Manager.Within]: these
// need the stored data.
func (m *Manager) Delete(ctx context.Context, id string, options ...WriteOption) error {
	_, err := remove(ctx, m, id, options, func(context.Context, Record) (struct{}, error) { return struct{}{}, nil })
	return err
}

func remove[T any](ctx context.Context, m *Manager, id string, options []WriteOption, form form[T]) (T, error) {
	return observeWrite(ctx, m, ActionDelete, &id, options, func(ctx context.Context, w *write) (T, error) {
		rec, err := retry(ctx, func() (Record, error) { return m.attemptDelete(ctx, id, w) })
		if err != nil {
			return *new(T), err
		}
		return form(ctx, rec)
	})
}

func (m *Manager) attemptDelete(ctx context.Context, id string, w *write) (Record, error) {
	rec, err := m.current(ctx, id, w.WriteSettings)
	if errors.Is(err, ErrCorrupt) && w.Revisions == nil && len(m.admissions) == 0 {
		return Record{}, m.deleteDamaged(ctx, id, err, w)
	}
	if err != nil {
		return Record{}, err
	}
	w.begins(rec)
	if err := m.admit(ctx, w, rec, Record{}); err != nil {
		return Record{}, err
	}
	if err := w.store.Delete(ctx, id, rec.Revision, w.deleteNote(ctx)); err != nil {
		return Record{}, asLostRace(err)
	}
	return w.deleted(rec), nil
}

// deleteDamaged deletes a record that the store cannot read. Its revision is not known. If
// the store does not delete it, it returns the error of the read, which has the cause.
func (m *Manager) deleteDamaged(ctx context.Context, id string, readErr error, w *write) error {
	err := w.store.Delete(ctx, id, 0, w.deleteNote(ctx))
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrCorrupt) {
		return readErr
	}
	return err
}
