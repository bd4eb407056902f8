package relayer

import (
	"context"
)

// Operation is a call of a [Manager].
type Operation struct {
	Action Action

	// Actor is the actor of the context (see [WithActor]). It is zero if there is none.
	Actor Actor

	// ID is the ID of the relayer, as the caller gave it: it may be any text. It is
	// empty for a list. That of a create is set when the operation ends, if it was
	// generated.
	ID string

	// DryRun is true if the write stores nothing (see [DryRun]).
	DryRun bool

	// Reason is the text that the caller gave with [Reason], with masked URLs.
	Reason string

	// OldRevision and Revision are the revisions of the relayer before and after a write.
	// They are set when the operation ends, and are equal if it changed nothing and in a
	// dry run. The first is 0 for a create, and the second for a delete. Both are 0 for a write that
	// failed before it read the relayer, or for which [IfRevision] does not hold.
	OldRevision, Revision uint64

	// Changed are the paths of the fields that the write changed, such as
	// policies.gas_price_cap or labels.team, in order. It is set when the operation ends, and
	// empty for a create, a delete, a dry run and a write that failed. A list is one field.
	Changed []string

	// Paused is the new value of paused if Changed contains it, and otherwise nil. It is set
	// when the operation ends.
	Paused *bool
}

// Observer is called at the start of every operation, on the goroutine of the caller, and for
// [Manager.Reseal] and [Manager.Reindex] on up to 16 others at once. The operation uses the
// context that it returns, so that a trace of the store belongs to that of the operation. The
// function that it returns, unless it is nil, is called with the error of the operation, before
// the call returns. Operation then has the result, and must not be kept.
//
// An Observer delays the caller for as long as it runs, and must be safe for concurrent
// use. A panic in it does not change the result of the operation: it is recovered and
// logged (see [WithLogger]), and the other observers are called.
type Observer func(ctx context.Context, operation *Operation) (context.Context, func(err error))
