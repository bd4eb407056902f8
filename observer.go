package relayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/go-relayer/relayer/internal/mask"
)

// OperationKind is the kind of an [Operation].
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

// Operation is a completed call of a [Manager].
type Operation struct {
	Kind OperationKind

	// ID is the ID of the relayer, as the caller gave it: it may be any text. It is
	// empty for a list, and for a create that failed before an ID was generated.
	ID string

	// Began is the start of the call, and Took its duration.
	Began time.Time
	Took  time.Duration

	// Err is the error that the call returned, or an unspecified error if a hook of
	// the host panicked.
	Err error
}

// Observer is called after every operation, on the goroutine of the caller and
// before the call returns: for metrics, traces and audit. It delays the caller for
// as long as it runs, and must be safe for concurrent use. A panic in an Observer
// does not change the result of the operation: it is recovered, logged (see
// [WithLogger]), and the other observers are called.
type Observer func(ctx context.Context, operation Operation)

// WithObserver calls observe after every operation. If it is given more than once,
// all observers are called, in the order given. [Manager.All] is observed as the
// lists that it reads.
func WithObserver(observe Observer) Option {
	return func(s *settings) error {
		if observe == nil {
			return errors.New("relayer: observer is nil")
		}
		s.observers = append(s.observers, observe)
		return nil
	}
}

// errPanicked is Operation.Err if the operation panics.
var errPanicked = errors.New("relayer: the operation panicked")

// observe runs an operation and then calls the observers. It reads id after the
// operation, because a create may generate it.
func observe[T any](ctx context.Context, m *Manager, kind OperationKind, id *string, run func() (T, error)) (T, error) {
	if len(m.observers) == 0 {
		return run()
	}
	operation := Operation{Kind: kind, Began: time.Now(), Err: errPanicked}
	defer func() {
		operation.ID, operation.Took = *id, time.Since(operation.Began)
		for _, observer := range m.observers {
			m.callObserver(ctx, observer, operation)
		}
	}()
	result, err := run()
	operation.Err = err
	return result, err
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
		slog.String("error", mask.Text(fmt.Sprintf("panic: %v", cause))+"\n"+string(debug.Stack())),
	)
}
