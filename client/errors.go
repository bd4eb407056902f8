package client

import (
	"context"
	"fmt"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Errors of HTTP, which a Manager does not create. Match them with [errors.Is].
var (
	// ErrUnauthorized reports that the server does not accept the token.
	ErrUnauthorized = wire.ErrUnauthorized

	// ErrForbidden reports that the server does not permit the operation with this token.
	ErrForbidden = wire.ErrForbidden
)

// named returns the value, or an error that names the operation and the ID.
func named[T any](action relayer.Action, id string, value T, err error) (T, error) {
	if err == nil {
		return value, nil
	}
	operation := string(action)
	switch {
	case relayer.IsID(id):
		operation += " " + id
	case id != "":
		operation += fmt.Sprintf(" %.70q", id)
	}
	return *new(T), fmt.Errorf("client: %s: %w", operation, err)
}

// ResponseError is the failure of a request to which the server, or a proxy in front of it,
// responded in full. It wraps the error that matches the status, if there is one.
type ResponseError struct {
	// Status is the HTTP status of the response.
	Status int

	// RequestID is the X-Request-Id of the response, or that of the request.
	RequestID string

	// RetryAfter is how long to wait before the next request if the status is 429 or 503. It is 0
	// if the server did not say it. A request with 429 had no effect.
	RetryAfter time.Duration

	request string // method and path
	err     error
}

// Error describes the response and its problems.
func (e *ResponseError) Error() string {
	text := fmt.Sprintf("%s: status %d (request %s): %v", e.request, e.Status, e.RequestID, e.err)
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(": wait %s", e.RetryAfter)
	}
	return text
}

// Unwrap returns the error that matches the status.
func (e *ResponseError) Unwrap() error { return e.err }

// unknownOutcome returns the error of a write whose outcome could not be determined. Of the
// causes, it wraps only the error of ctx: ErrUnavailable, for example, promises that there was no
// effect.
func (r *request) unknownOutcome(ctx context.Context, cause error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w (request %s): %w", relayer.ErrOutcomeUnknown, r.requestID, err)
	}
	return fmt.Errorf("%w (request %s): %v", relayer.ErrOutcomeUnknown, r.requestID, cause)
}
