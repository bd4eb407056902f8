package relayer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
)

// Admission is a write that a hook of the host may refuse. The hook may read from the Manager:
// its reads are separate operations.
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

// Refuse returns the error with which an admission refuses a write: a [*ValidationError]
// with the reason, for the sender of the request. URLs in the reason are masked.
func Refuse(reason string) error {
	return invalid("", mask.Text(reason))
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
