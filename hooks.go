package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/mask"
)

// Actor is who calls: the origin of an operation for hooks, observers and logs.
type Actor struct {
	// ID identifies the caller, such as the name of a token. It contains no secret.
	ID string

	// RequestID identifies the request. It can be empty outside of a request.
	RequestID string

	// Address is the network address of the client, without its port. It is empty outside
	// of a request.
	Address string

	// Attributes are further properties of the caller, such as its groups or its tenant: the
	// authenticator of the host sets them, and its authorizer reads them. They are neither stored
	// nor logged. The map is shared with all copies of the Actor and must not be modified.
	Attributes map[string][]string
}

type actorKey struct{}

// WithActor returns a context for operations of the actor. Package httpapi sets it for each
// request.
func WithActor(ctx context.Context, actor Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorFrom returns the actor of the context, and false if it has none.
func ActorFrom(ctx context.Context) (Actor, bool) {
	actor, ok := ctx.Value(actorKey{}).(Actor)
	return actor, ok
}

// Operation is a call of a [Manager].
type Operation struct {
	// Action is what was called. A history is [ActionGet] with an ID, and [ActionList] without.
	Action Action

	// Actor is the actor of the context (see [WithActor]). It is zero if there is none.
	// [Manager.PauseAll] and [Manager.ResumeAll] generate a missing RequestID.
	Actor Actor

	// ID is the ID of the relayer, as the caller gave it: it may be any text. It is empty for a
	// list. When a create ends, it is the ID of the request or the generated one, if any.
	ID string

	// DryRun is true if the write stores nothing (see [DryRun]).
	DryRun bool

	// Reason is the text that the caller gave with [Reason], with masked URLs. An invalid text is
	// omitted.
	Reason string

	// OldRevision and Revision are the revisions of the relayer before and after a write. They
	// are final when the operation ends. After a write that stored nothing they are equal: it
	// changed nothing, was a dry run, or failed. Otherwise OldRevision is 0 for a create, and
	// Revision is 0 for a delete. Both are 0 for the delete of a record that the store cannot
	// read, and for a write that fails before it reads the relayer or because of [IfRevision].
	OldRevision, Revision uint64

	// Changed is the [ChangeInfo.Changed] of the write. It is set when the operation ends, and
	// empty for a create, a delete, and a write that stored nothing.
	Changed []string

	// Paused is the new value of paused if Changed contains it, and otherwise nil. It is set
	// when the operation ends.
	Paused *bool
}

// Observer is called at the start of every operation, on the goroutine that runs it. The
// operation uses the returned context, so a store can make its spans children of the span of the
// operation. The returned function, unless it is nil, is called with the error of the operation,
// before the call returns. The [Operation] then has the result. An Observer must not keep the
// Operation.
//
// An Observer delays the caller for as long as it runs, and must be safe for concurrent use. A
// panic in it reaches the caller: a write that was made before is durable.
type Observer func(ctx context.Context, operation *Operation) (context.Context, func(err error))

// Refuse returns the error with which an admission refuses a write: a [*ValidationError]
// with the reason, for the sender of the request. URLs in the reason are masked.
func Refuse(reason string) error {
	return invalid("", mask.Text(reason))
}

var errPanicked = errors.New("relayer: the operation panicked")

// observe runs an operation between the calls of the observers, whose end functions are called even
// if run panics, with errPanicked. The operation is nil for a read. An error has the zero result, the
// action and the ID, which a create may generate.
func observe[T any](ctx context.Context, observers []Observer, action Action, id string, operation *Operation, run func(context.Context) (T, error)) (result T, err error) {
	var outcome *error
	if len(observers) > 0 {
		operation = cmp.Or(operation, &Operation{Action: action, ID: id})
		outcome = new(errPanicked)
	}
	if operation != nil {
		operation.Actor, _ = ActorFrom(ctx) // for admissions too
	}
	for _, observe := range observers {
		observed, end := observe(ctx, operation)
		ctx = cmp.Or(observed, ctx)
		if end != nil {
			// A captured variable would be on the heap, even without observers.
			defer func(outcome *error) { end(*outcome) }(outcome)
		}
	}
	result, err = run(ctx)
	if operation != nil {
		id = operation.ID
	}
	if err != nil {
		result, err = *new(T), operationError(action, id, err)
	}
	if outcome != nil {
		*outcome = err
	}
	return result, err
}

// failedOperation is the error of an operation, with its action and the ID.
type failedOperation struct {
	action Action
	id     string
	err    error
}

func operationError(action Action, id string, err error) error {
	if err == nil {
		return nil
	}
	return &failedOperation{action, id, err}
}

func (e *failedOperation) Error() string {
	text := "relayer: " + string(e.action)
	switch {
	case IsID(e.id):
		text += " " + e.id
	case e.id != "":
		text += " " + strconv.Quote(mask.Field(mask.Shortened(e.id, limits.ID)))
	}
	return text + ": " + strings.TrimPrefix(e.err.Error(), "relayer: ")
}

func (e *failedOperation) Unwrap() error { return e.err }

// admissionError returns the error of an admission. Only a refusal keeps its meaning for
// remote callers, which get its fields: their URLs are masked in a copy.
func admissionError(err error) error {
	refusal, ok := errors.AsType[*ValidationError](err)
	if !ok || refusal == nil {
		return fmt.Errorf("relayer: admission: %w", faultError{err})
	}
	masked := &ValidationError{Fields: slices.Clone(refusal.Fields)}
	for i, field := range masked.Fields {
		masked.Fields[i] = FieldError{Field: mask.Field(field.Field), Message: mask.Text(field.Message), Code: field.Code}
	}
	return masked
}
