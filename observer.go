package relayer

import (
	"context"
	"errors"
	"time"
)

// OperationKind is what was done to the registry.
type OperationKind string

// The kinds of operation.
const (
	OperationCreate  OperationKind = "create"
	OperationGet     OperationKind = "get"
	OperationList    OperationKind = "list"
	OperationUpdate  OperationKind = "update"
	OperationPause   OperationKind = "pause"
	OperationResume  OperationKind = "resume"
	OperationDisable OperationKind = "disable"
	OperationEnable  OperationKind = "enable"
	OperationDelete  OperationKind = "delete"
)

// Operation is one call of a [Manager] that has ended.
type Operation struct {
	Kind OperationKind

	// ID is the relayer's id. It is empty for a list, and for a create that was
	// refused before an id was made. A caller may have sent any text as an id.
	ID string

	// Began is when the call began, and Took how long it lasted.
	Began time.Time
	Took  time.Duration

	// Err is what the call returned: nil where it was carried out, and an error of
	// its own where a hook of the host panicked.
	Err error
}

// Observer is told of every operation after it has ended, on the goroutine that
// called it and before the call returns: for metrics, traces and audit. It is
// called by many goroutines at once, and what it does delays the caller.
type Observer func(ctx context.Context, operation Operation)

// WithObserver has the Manager tell the host of every operation. Given more than
// once, all observers are told, in the order given. [Manager.All] is told as the
// lists that it reads.
func WithObserver(observe Observer) Option {
	return Option{func(m *Manager) error {
		if observe == nil {
			return errors.New("relayer: observer is nil")
		}
		m.observers = append(m.observers, observe)
		return nil
	}}
}

// errAbandoned is what an operation has as its error until it returns another.
var errAbandoned = errors.New("relayer: the operation panicked")

// begin marks an operation as begun: now, and abandoned until it returns.
func begin(err *error) time.Time {
	*err = errAbandoned
	return time.Now()
}

// observe is deferred, so that it takes what is known at the start as values
// and what is known at the end by pointer.
func (m *Manager) observe(ctx context.Context, kind OperationKind, id *string, began time.Time, err *error) {
	if len(m.observers) == 0 {
		return
	}
	operation := Operation{Kind: kind, ID: *id, Began: began, Took: time.Since(began), Err: *err}
	for _, observe := range m.observers {
		observe(ctx, operation)
	}
}
