package relayer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
)

// DeleteGuard lets the host refuse a delete, for example while transactions are
// pending. It returns the reason for the caller of the delete, or "" if the relayer
// may be deleted. If it returns an error, the delete fails with that error. It is
// called again if the relayer is changed before it is deleted. It must be safe for
// concurrent use.
type DeleteGuard func(ctx context.Context, r *Relayer) (refusal string, err error)

// WithDeleteGuard calls guard before every delete.
func WithDeleteGuard(guard DeleteGuard) Option {
	return func(s *settings) error {
		if guard == nil {
			return errors.New("relayer: delete guard is nil")
		}
		s.mayDelete = guard
		return nil
	}
}

// Delete removes the relayer. It returns [ErrNotFound], a [*ValidationError] with
// the reason if the [DeleteGuard] refuses, or [ErrConflict] if a condition does not
// hold or contention exhausts the retries.
//
// It also removes a relayer whose stored data is damaged, if the store supports that and
// there is neither a condition nor a guard: both need the stored data.
func (m *Manager) Delete(ctx context.Context, id string, conditions ...Condition) error {
	_, err := observe(ctx, m, OperationDelete, &id, func() (Record, error) {
		return retry(ctx, func() (Record, error) { return m.attemptDelete(ctx, id, conditions) })
	})
	return err
}

func (m *Manager) attemptDelete(ctx context.Context, id string, conditions []Condition) (Record, error) {
	rec, err := m.current(ctx, id, conditions)
	if errors.Is(err, ErrCorrupt) && len(conditions) == 0 && m.mayDelete == nil {
		return Record{}, m.deleteDamaged(ctx, id, err)
	}
	if err != nil {
		return Record{}, err
	}
	if err := m.guardDelete(ctx, rec); err != nil {
		return Record{}, err
	}
	return rec, asLostRace(m.store.Delete(ctx, id, rec.Revision))
}

// deleteDamaged deletes a record that the store cannot read. Its revision is not known. If
// the store does not delete it, it returns the error of the read, which has the cause.
func (m *Manager) deleteDamaged(ctx context.Context, id string, readErr error) error {
	err := m.store.Delete(ctx, id, 0)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrCorrupt) {
		return readErr
	}
	return err
}

func (m *Manager) guardDelete(ctx context.Context, rec Record) error {
	if m.mayDelete == nil {
		return nil
	}
	r, err := m.relayerOf(rec)
	if err != nil {
		return err
	}
	refusal, err := m.mayDelete(ctx, r)
	if err != nil {
		return fmt.Errorf("relayer: delete guard of %s: %w", rec.ID, hookError(err))
	}
	if refusal != "" {
		return &ValidationError{Fields: []FieldError{{Message: mask.Text(refusal)}}}
	}
	return nil
}

// hookError masks the URLs in the error of a hook of the host. Those of a
// [*ValidationError] are masked in a copy: a remote caller gets its fields.
func hookError(err error) error {
	invalid, ok := errors.AsType[*ValidationError](err)
	if !ok || invalid == nil {
		return mask.Error(err)
	}
	masked := &ValidationError{Fields: slices.Clone(invalid.Fields)}
	for i, field := range masked.Fields {
		masked.Fields[i] = FieldError{Field: mask.Text(field.Field), Message: mask.Text(field.Message)}
	}
	return masked
}
