package relayer

import (
	"context"
	"errors"
	"fmt"
)

// DeleteGuard lets the host refuse a delete, because transactions are pending
// for example. It returns the reason, in words for whoever asked for the delete,
// or "" where the relayer may go. An error is a fault: the relayer stays, and
// the delete returns it. It is called by many goroutines at once, and again
// where the relayer is changed between the question and the delete.
type DeleteGuard func(ctx context.Context, r *Relayer) (refusal string, err error)

// WithDeleteGuard asks the host before every delete.
func WithDeleteGuard(guard DeleteGuard) Option {
	return func(m *Manager) error {
		if guard == nil {
			return errors.New("relayer: delete guard is nil")
		}
		m.mayDelete = guard
		return nil
	}
}

// Delete removes the relayer. It returns [ErrNotFound], a [*ValidationError]
// with the host's reason where a [DeleteGuard] refuses, or [ErrConflict] where
// a condition does not hold or the race was lost too often.
func (m *Manager) Delete(ctx context.Context, id string, conditions ...Condition) (err error) {
	defer m.observe(ctx, OperationDelete, &id, begin(&err), &err)
	return untilWon(ctx, func() error { return m.attemptDelete(ctx, id, conditions) })
}

func (m *Manager) attemptDelete(ctx context.Context, id string, conditions []Condition) error {
	rec, err := m.standing(ctx, id, conditions)
	if err != nil {
		return err
	}
	if err := m.askGuard(ctx, rec); err != nil {
		return err
	}
	_, err = m.write(ctx, id, Deleted, func() (Record, error) { return rec, m.store.Delete(ctx, id, rec.Revision) })
	return lostRace(err)
}

func (m *Manager) askGuard(ctx context.Context, rec Record) error {
	if m.mayDelete == nil {
		return nil
	}
	r, err := relayerOf(rec)
	if err != nil {
		return err
	}
	refusal, err := m.mayDelete(ctx, r)
	if err != nil {
		return fmt.Errorf("relayer: asking whether %s may be deleted: %w", rec.ID, err)
	}
	if refusal != "" {
		return &ValidationError{Fields: []FieldError{{Message: refusal}}}
	}
	return nil
}
