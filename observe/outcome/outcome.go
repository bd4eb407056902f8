// Package outcome classifies the result of a [relayer.Manager] operation as one
// of nine fixed words, for metric labels, span attributes and audit logs.
//
// The packages relayerotel and relayerprom use the same words, so that
// dashboards and traces agree. A custom observer can use them too.
package outcome

import (
	"context"
	"errors"

	"github.com/go-relayer/relayer"
)

// Outcome is the result of an operation: one of the constants below. It never
// contains text that a client sent.
type Outcome string

// The outcomes.
const (
	// OK means that the operation succeeded.
	OK Outcome = "ok"

	// NotFound means [relayer.ErrNotFound]. A history that the store does not have is not found
	// too.
	NotFound Outcome = "not_found"

	// Exists means [relayer.ErrExists].
	Exists Outcome = "exists"

	// Invalid means [relayer.ErrInvalid]. A write that an admission refuses (see
	// [relayer.Refuse]) has this outcome too.
	Invalid Outcome = "invalid"

	// Conflict means [relayer.ErrConflict] or [relayer.ErrNoRevision].
	Conflict Outcome = "conflict"

	// Unavailable means [relayer.ErrUnavailable].
	Unavailable Outcome = "unavailable"

	// Unknown means [relayer.ErrOutcomeUnknown]: the write may have been committed.
	Unknown Outcome = "unknown_outcome"

	// Canceled means that the caller canceled the context. An expired deadline is not: the caller
	// was still waiting for a slow registry.
	Canceled Outcome = "canceled"

	// Error means any other error, such as a fault or an error of a host hook.
	Error Outcome = "error"
)

// All returns every outcome.
func All() []Outcome {
	return []Outcome{OK, NotFound, Exists, Invalid, Conflict, Unavailable, Unknown, Canceled, Error}
}

// Actions returns every action that a Manager reports to its observers, for observers that
// prepare a series for each action and outcome.
func Actions() []relayer.Action {
	return []relayer.Action{
		relayer.ActionCreate, relayer.ActionGet, relayer.ActionList, relayer.ActionUpdate,
		relayer.ActionPause, relayer.ActionResume, relayer.ActionDisable, relayer.ActionEnable,
		relayer.ActionDelete, relayer.ActionReveal,
	}
}

// IsFault reports whether the outcome can be a server-side failure, which an operator
// investigates. The other outcomes are normal results of requests.
func (o Outcome) IsFault() bool {
	return o == Unavailable || o == Unknown || o == Error
}

// Of returns the outcome of an operation that ran with ctx and returned err.
func Of(ctx context.Context, err error) Outcome {
	is := func(target error) bool { return errors.Is(err, target) }
	// In order of precedence: an operator must always learn that a write may have been committed.
	switch {
	case err == nil:
		return OK
	case is(relayer.ErrOutcomeUnknown):
		return Unknown
	case is(relayer.ErrNotFound):
		return NotFound
	case is(relayer.ErrExists):
		return Exists
	case is(relayer.ErrInvalid):
		return Invalid
	case is(relayer.ErrConflict) || is(relayer.ErrNoRevision):
		return Conflict
	case is(context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return Canceled // if only a host hook was canceled, the caller is still waiting: that is a fault
	case is(relayer.ErrUnavailable):
		return Unavailable
	case is(errors.ErrUnsupported):
		return NotFound
	}
	return Error
}
