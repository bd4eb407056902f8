package relayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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

// Observer is called after every operation, on the goroutine of the caller and
// before the call returns: for metrics, traces and audit. It is called by many
// goroutines at once, and delays the caller for as long as it runs. A panic in an
// Observer does not change the result of the operation: it is recovered, logged
// (see [WithLogger]), and the other observers are called.
type Observer func(ctx context.Context, operation Operation)

// WithObserver has the Manager tell the host of every operation. Given more than
// once, all observers are told, in the order given. [Manager.All] is told as the
// lists that it reads.
func WithObserver(observe Observer) Option {
	return func(m *Manager) error {
		if observe == nil {
			return errors.New("relayer: observer is nil")
		}
		m.observers = append(m.observers, observe)
		return nil
	}
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
		m.callObserver(ctx, observe, operation)
	}
}

// callObserver recovers a panic of the observer: the operation has ended and may
// be durable, so that its caller must learn the real result.
func (m *Manager) callObserver(ctx context.Context, observe Observer, operation Operation) {
	defer func() {
		if cause := recover(); cause != nil {
			m.logObserverPanic(ctx, operation, cause)
		}
	}()
	observe(ctx, operation)
}

func (m *Manager) logObserverPanic(ctx context.Context, operation Operation, cause any) {
	// The logger's handler is code of the host too.
	defer func() { _ = recover() }()
	m.logger.LogAttrs(ctx, slog.LevelError, "observer panicked",
		slog.String("operation", string(operation.Kind)),
		slog.String("relayer_id", operation.ID),
		slog.String("error", fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())),
	)
}
