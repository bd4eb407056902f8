package relayer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// write is an observed write.
type write struct {
	WriteSettings
	store      Store // stores nothing in a dry run
	operation  Operation
	isObserved bool
	changed    []string // by a dry run, which has it
}

// observeWrite runs a write between the calls of the observers. It reads id after the
// write, because a create may generate it.
func observeWrite[T any](ctx context.Context, m *Manager, action Action, id *string, options []WriteOption, run func(context.Context, *write) (T, error)) (T, error) {
	w := &write{store: m.store, isObserved: len(m.observers) > 0}
	settings, err := NewWriteSettings(options...)
	if w.WriteSettings = settings; settings.DryRun {
		w.store = withoutWrites(m.store)
	}
	w.operation = Operation{Action: action, ID: *id, DryRun: settings.DryRun, Reason: settings.Reason}
	return observed(ctx, m.observers, &w.operation, func(ctx context.Context) (result T, _ error) {
		if err == nil {
			if m.sealer != nil {
				defer m.writes.begin()()
			}
			result, err = run(ctx, w)
		}
		w.operation.ID = *id
		return result, err
	})
}

// note returns the note of the write, which is made now. The private part of an update is
// that of the caller.
func (w *write) note(ctx context.Context, current, rec Record) []byte {
	changesURLs := current.Revision != 0 && !bytes.Equal(current.Private, rec.Private)
	return encodeNote(ctx, w.operation.Action, w.Reason, changesURLs)
}

// unnoted returns the record. That of a dry run has no note, because the caller has not made the
// last change; the write then has what would change.
func (w *write) unnoted(old, rec Record) Record {
	if w.DryRun {
		w.changed = append([]string{}, changedPaths(old, rec)...)
		rec.Note = nil
	}
	return rec
}

func (w *write) relayer(m *Manager, rec Record) (*Relayer, error) {
	r, err := m.relayerOf(rec)
	if err == nil {
		r.LastChange.Changed = w.changed
	}
	return r, err
}

// replaces records the effect of the write. The zero Record is none.
func (w *write) replaces(old, rec Record) {
	isCurrent := w.operation.OldRevision == 0 // before it is replaced
	if !w.isObserved || w.DryRun && !isCurrent {
		return
	}
	w.operation.OldRevision, w.operation.Revision = old.Revision, rec.Revision
	if old.Revision == 0 || rec.Revision == 0 {
		return
	}
	w.operation.Changed, w.operation.Paused = changedPaths(old, rec), nil
	if slices.Contains(w.operation.Changed, "paused") {
		w.operation.Paused = new(readSwitches(rec.Document).isPaused)
	}
}

// admit calls the admissions. A zero record has no relayer.
func (m *Manager) admit(ctx context.Context, action Action, old, changed Record, dryRun bool) error {
	if len(m.admissions) == 0 || action == ActionPause || action == ActionDisable {
		return nil
	}
	for _, admit := range m.admissions {
		admission := Admission{Action: action, DryRun: dryRun}
		admission.Actor, _ = ActorFrom(ctx)
		var err error
		if admission.Old, err = m.optionalRelayerOf(old); err != nil {
			return err
		}
		if admission.New, err = m.optionalRelayerOf(changed); err != nil {
			return err
		}
		if err := admit(ctx, admission); err != nil {
			return admissionError(err)
		}
	}
	return nil
}

func (m *Manager) optionalRelayerOf(rec Record) (*Relayer, error) {
	if rec.ID == "" {
		return nil, nil
	}
	return m.relayerOf(rec)
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
