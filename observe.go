package relayer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/mask"
)

var errPanicked = errors.New("relayer: the operation panicked")

// observe runs a read between the calls of the observers.
func observe[T any](ctx context.Context, m *Manager, action Action, id string, run func(context.Context) (T, error)) (T, error) {
	if len(m.observers) == 0 {
		result, err := run(ctx)
		return resultOf(action, id, result, err)
	}
	return observed(ctx, m, &Operation{Action: action, ID: id}, run)
}

// ending is the end function of an observer, with its context.
type ending struct {
	ctx context.Context
	end func(error)
}

// observed allocates nothing for up to 4 observers.
func observed[T any](ctx context.Context, m *Manager, operation *Operation, run func(context.Context) (T, error)) (result T, err error) {
	operation.Actor, _ = ActorFrom(ctx)
	var room [4]ending
	endings := room[:0]
	outcome := errPanicked
	defer func() {
		for i := len(endings) - 1; i >= 0; i-- {
			m.end(endings[i].ctx, operation, endings[i].end, outcome)
		}
	}()
	for _, observer := range m.observers {
		var end func(error)
		ctx, end = m.begin(ctx, observer, operation)
		endings = append(endings, ending{ctx, end})
	}
	result, err = run(ctx)
	result, err = resultOf(operation.Action, operation.ID, result, err)
	outcome = err
	return result, err
}

// begin calls an observer. A panic of it has no effect on the operation.
func (m *Manager) begin(ctx context.Context, observe Observer, operation *Operation) (observed context.Context, end func(error)) {
	defer func() {
		if cause := recover(); cause != nil {
			m.logObserverPanic(ctx, operation, cause)
			observed, end = ctx, nil
		}
	}()
	observed, end = observe(ctx, operation)
	if observed == nil {
		observed = ctx
	}
	return observed, end
}

// end recovers a panic of an observer: the operation has ended and may be durable, so that
// its caller must learn the real result.
func (m *Manager) end(ctx context.Context, operation *Operation, end func(error), err error) {
	if end == nil {
		return
	}
	defer func() {
		if cause := recover(); cause != nil {
			m.logObserverPanic(ctx, operation, cause)
		}
	}()
	end(err)
}

func (m *Manager) logObserverPanic(ctx context.Context, operation *Operation, cause any) {
	// The logger's handler is code of the host too.
	defer func() { _ = recover() }()
	id := operation.ID
	if !IsID(id) {
		id = "" // any text of a client, such as a URL
	}
	m.logger.LogAttrs(ctx, slog.LevelError, "observer panicked",
		slog.String("operation", string(operation.Action)),
		slog.String("relayer_id", id),
		slog.String("error", mask.Text(fmt.Sprintf("panic: %v", cause))+"\n"+string(debug.Stack())),
	)
}

// failedOperation is the error of an operation, with its action and the ID.
type failedOperation struct {
	action Action
	id     string
	err    error
}

// resultOf returns the result of an operation, and the zero value with an error.
func resultOf[T any](action Action, id string, result T, err error) (T, error) {
	if err != nil {
		result = *new(T)
	}
	return result, operationError(action, id, err)
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
		text += " " + strconv.Quote(mask.Shortened(e.id, limits.ID))
	}
	return text + ": " + strings.TrimPrefix(e.err.Error(), "relayer: ")
}

func (e *failedOperation) Unwrap() error { return e.err }
