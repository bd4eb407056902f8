package relayer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// write is an observed write.
type write struct {
	WriteSettings
	store     Store // stores nothing in a dry run
	operation Operation
}

// observeWrite runs a write between the calls of the observers. It reads id after the
// write, because a create may generate it.
func observeWrite[T any](ctx context.Context, m *Manager, action Action, id *string, options []WriteOption, run func(context.Context, *write) (T, error)) (T, error) {
	w := &write{store: m.store}
	settings, err := NewWriteSettings(options...)
	if w.WriteSettings = settings; settings.DryRun {
		w.store = withoutWrites(m.store)
	}
	w.operation = Operation{Action: action, ID: *id, DryRun: settings.DryRun, Reason: settings.Reason}
	return observed(ctx, m.observers, &w.operation, func(ctx context.Context) (result T, _ error) {
		if err == nil {
			result, err = run(ctx, w)
		}
		w.operation.ID = *id
		return result, err
	})
}

// begins records the revision on which an attempt of the write is based. The zero Record is
// none.
func (w *write) begins(current Record) {
	w.operation.OldRevision, w.operation.Revision = current.Revision, current.Revision
}

// updateNote returns the note of a change of current to rec, which is made now.
func (w *write) updateNote(ctx context.Context, current, rec Record) []byte {
	n := newNote(ctx, w.operation.Action, w.Reason, changedPaths(current, rec))
	switch {
	case isPaused(current) && isPaused(rec):
		n.setPaused(current.Note)
	case isPaused(rec):
		n.setPaused(nil)
	}
	return n.encoded()
}

// createNote returns the note of a create, which is made now.
func (w *write) createNote(ctx context.Context, rec Record) []byte {
	n := newNote(ctx, w.operation.Action, w.Reason, nil)
	if isPaused(rec) {
		n.setPaused(nil)
	}
	return n.encoded()
}

// deleteNote returns the note of a delete, which is made now.
func (w *write) deleteNote(ctx context.Context) []byte {
	return newNote(ctx, w.operation.Action, w.Reason, nil).encoded()
}

// created records a create, and updated an update of current. They return the record as the
// caller gets it: the note of a dry run has only what would change.
func (w *write) created(rec Record) Record {
	if w.DryRun {
		return dryRecord(Record{}, rec)
	}
	w.operation.Revision = rec.Revision
	return rec
}

func (w *write) updated(current, rec Record) Record {
	if w.DryRun {
		return dryRecord(current, rec)
	}
	w.operation.Revision, w.operation.Changed = rec.Revision, changeInfoOf(rec).Changed
	if isPaused(rec) != isPaused(current) {
		w.operation.Paused = new(isPaused(rec))
	}
	return rec
}

// deleted is updated for a delete.
func (w *write) deleted(current Record) Record {
	if w.DryRun {
		return dryRecord(Record{}, current)
	}
	w.operation.Revision = 0
	return current
}

// unchanged returns the record of a write that changes nothing.
func (w *write) unchanged(current Record) Record {
	if w.DryRun {
		return dryRecord(current, current)
	}
	return current
}

func dryRecord(old, rec Record) Record {
	rec.Note = onlyPaths(changedPaths(old, rec))
	return rec
}

// admit calls the admissions. A zero record has no relayer.
func (m *Manager) admit(ctx context.Context, w *write, old, changed Record) error {
	if w.operation.Action == ActionPause || w.operation.Action == ActionDisable {
		return nil
	}
	for _, admit := range m.admissions {
		before, err := m.optionalRelayerOf(ctx, old)
		if err != nil {
			return err
		}
		after, err := m.optionalRelayerOf(ctx, changed)
		if err != nil {
			return err
		}
		if err := admit(ctx, w.operation, before, after); err != nil {
			return admissionError(err)
		}
	}
	return nil
}

func (m *Manager) optionalRelayerOf(ctx context.Context, rec Record) (*Relayer, error) {
	if rec.ID == "" {
		return nil, nil
	}
	return m.relayerOf(ctx, rec)
}

// current returns the stored record, on which a change is based.
func (m *Manager) current(ctx context.Context, id string, settings WriteSettings) (Record, error) {
	rec, err := m.get(ctx, id)
	if err != nil {
		return Record{}, err
	}
	return rec, settings.check(rec.Revision)
}

func (w *write) swap(ctx context.Context, rec Record) (Record, error) {
	updated, err := w.store.Update(ctx, rec)
	return updated, asLostRace(err)
}

// lostRace marks the [ErrConflict] of a store, the only error that is retried: a hook
// of the host may return an error that matches ErrConflict too.
type lostRace struct{ error }

func (e lostRace) Unwrap() error { return e.error }

func asLostRace(err error) error {
	if errors.Is(err, ErrConflict) && !errors.Is(err, ErrOutcomeUnknown) {
		return lostRace{err}
	}
	return err
}

// maxAttempts bounds the retries of a change. Each retry means that another writer
// succeeded, so that only heavy contention exhausts this limit.
const maxAttempts = 200

// retry calls attempt until it succeeds, fails with another error than a lost race,
// or the attempts are exhausted.
func retry(ctx context.Context, attempt func() (Record, error)) (Record, error) {
	for lost := range maxAttempts {
		rec, err := attempt()
		if _, isLost := errors.AsType[lostRace](err); !isLost {
			return rec, err
		}
		if err := backOff(ctx, lost); err != nil {
			return Record{}, err
		}
	}
	return Record{}, fmt.Errorf("%w: gave up after %d attempts: try again", ErrConflict, maxAttempts)
}

// backOff sleeps with exponential backoff and full jitter.
func backOff(ctx context.Context, lost int) error {
	const longest = 10 * time.Millisecond
	limit := min(longest, 50*time.Microsecond<<min(lost, 10))
	select {
	case <-time.After(rand.N(limit)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
