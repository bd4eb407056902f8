package relayer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
)

// Admission is a write that a hook of the host may refuse.
type Admission struct {
	// Action is [ActionCreate], [ActionUpdate], [ActionResume], [ActionEnable] or
	// [ActionDelete].
	Action Action

	// Actor is the actor of the context (see [WithActor]). It is zero if there is none.
	Actor Actor

	// Old is the relayer before the write, and New the one after it. They are copies. Old
	// is nil for a create, and New is nil for a delete. RPC URLs are masked if they are
	// sealed (see [WithSealer]).
	Old, New *Relayer

	// DryRun is true if nothing is stored (see [DryRun]).
	DryRun bool
}

// WithAdmission calls admit before every write except [Manager.Pause] and
// [Manager.Disable], the switches for emergencies, and [Manager.Reseal], so that the host can
// refuse it: a delete while transactions are pending, for example. A [Manager.Update], and a
// patch with other members, that pauses or disables too is an update: to permit every pause,
// permit what has New.Paused and not Old.Paused. If admit returns an error,
// nothing is stored. The sender of an HTTP request sees the error only if it is a
// [*ValidationError] or the result of [Refuse]. Any other error is a fault of the server: it
// matches the errors that it wraps, but none of this package. Admit is not called if the
// write changes nothing. It is called again if another writer changes the relayer before it
// is stored. It must be safe for concurrent use. If the option is given more than once, every
// function must admit the write.
func WithAdmission(admit func(ctx context.Context, admission Admission) error) Option {
	return Option{func(s *settings) error {
		if admit == nil {
			return errors.New("relayer: admission is nil")
		}
		s.admissions = append(s.admissions, admit)
		return nil
	}}
}

// Refuse returns the error with which an admission refuses a write: a [*ValidationError]
// with the reason, for the sender of the request. URLs in the reason are masked.
func Refuse(reason string) error {
	return invalid("", mask.Text(reason))
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

// admissionError returns the error of an admission. Only a refusal keeps its meaning for
// remote callers, which get its fields: their URLs are masked in a copy.
func admissionError(err error) error {
	refusal, ok := errors.AsType[*ValidationError](err)
	if !ok || refusal == nil {
		return fmt.Errorf("relayer: admission: %w", faultError{err})
	}
	masked := &ValidationError{Fields: slices.Clone(refusal.Fields)}
	for i, field := range masked.Fields {
		masked.Fields[i] = FieldError{Field: mask.Text(field.Field), Message: mask.Text(field.Message), Code: field.Code}
	}
	return masked
}
