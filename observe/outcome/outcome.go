// Package outcome names how an operation of a [relayer.Manager] ended, in a few
// fixed words: for the labels of metrics, the attributes of spans and the lines
// of an audit log.
//
// The words are the same in observe/otel and observe/prometheus, so that a
// dashboard and a trace speak of the same thing. An observer of your own can use
// them too.
package outcome

import (
	"context"
	"errors"

	"github.com/go-relayer/relayer"
)

// Outcome is how an operation ended. There are only those below, and none of
// them has anything in it that a caller sent.
type Outcome string

// The outcomes.
const (
	// OK is that the operation was carried out.
	OK Outcome = "ok"

	// NotFound is [relayer.ErrNotFound].
	NotFound Outcome = "not_found"

	// Exists is [relayer.ErrExists].
	Exists Outcome = "exists"

	// Invalid is [relayer.ErrInvalid], the refusal of a [relayer.DeleteGuard]
	// included.
	Invalid Outcome = "invalid"

	// Conflict is [relayer.ErrConflict].
	Conflict Outcome = "conflict"

	// Unavailable is [relayer.ErrUnavailable].
	Unavailable Outcome = "unavailable"

	// Unknown is [relayer.ErrOutcomeUnknown]: the write may have been carried
	// out.
	Unknown Outcome = "unknown_outcome"

	// Canceled is that the caller called the operation off. A deadline that
	// passes is an [Error]: nobody went away, the registry was too slow.
	Canceled Outcome = "canceled"

	// Error is anything else: a fault, or an error of the host's own.
	Error Outcome = "error"
)

// All returns every outcome there is.
func All() []Outcome {
	return []Outcome{OK, NotFound, Exists, Invalid, Conflict, Unavailable, Unknown, Canceled, Error}
}

// IsFault tells whether someone should look into it. The other outcomes are
// answers, which a caller gets for what it asked.
func (o Outcome) IsFault() bool {
	return o == Unavailable || o == Unknown || o == Error
}

// sentinels is in the order of precedence. That a write may have been carried
// out outweighs whatever else an error says.
var sentinels = []struct {
	err     error
	outcome Outcome
}{
	{relayer.ErrOutcomeUnknown, Unknown},
	{relayer.ErrNotFound, NotFound},
	{relayer.ErrExists, Exists},
	{relayer.ErrInvalid, Invalid},
	{relayer.ErrConflict, Conflict},
}

// Of returns the outcome of an operation that was called with ctx and returned
// err.
func Of(ctx context.Context, err error) Outcome {
	if err == nil {
		return OK
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel.err) {
			return sentinel.outcome
		}
	}
	if isCanceled(ctx, err) {
		return Canceled
	}
	if errors.Is(err, relayer.ErrUnavailable) {
		return Unavailable
	}
	return Error
}

// isCanceled looks at the context too: a host's hook that is canceled for a
// reason of its own is a fault, since the caller still waits for its answer.
func isCanceled(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled)
}
