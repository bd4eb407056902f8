package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Errors of HTTP, which a Manager does not return. Match them with [errors.Is].
var (
	// ErrUnauthorized reports that the server does not accept the token.
	ErrUnauthorized = wire.ErrUnauthorized

	// ErrForbidden reports that the server does not permit the operation with this
	// token.
	ErrForbidden = wire.ErrForbidden
)

// named returns the value, or an error that names the operation and the ID.
func named[T any](action relayer.Action, id string, value T, err error) (T, error) {
	if err == nil {
		return value, nil
	}
	operation := string(action)
	if id != "" {
		operation += " " + printable(id)
	}
	return *new(T), fmt.Errorf("client: %s: %w", operation, err)
}

// printable quotes a text that cannot be an ID.
func printable(id string) string {
	if relayer.IsID(id) {
		return id
	}
	return fmt.Sprintf("%.70q", id)
}

// ResponseError is the failure of a request that the server, or a proxy in front of it,
// responded to. It wraps the error that matches the status, if there is one.
type ResponseError struct {
	// Status is the HTTP status of the response.
	Status int

	// RequestID is the X-Request-Id of the response, or that of the request.
	RequestID string

	// RetryAfter is how long to wait before the next request, if the status is 429 (too many
	// requests, of which none had an effect) or 503. It is 0 if the server did not say it.
	RetryAfter time.Duration

	request string // method and path
	err     error
}

// Error describes the response without its body.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("%s: status %d (request %s): %v", e.request, e.Status, e.RequestID, e.err)
}

// Unwrap returns the error that matches the status.
func (e *ResponseError) Unwrap() error { return e.err }

// errorOf returns the error of a response that is not a success.
func errorOf(resp *response) error { return newResponseError(resp, causeOf(resp)) }

func newResponseError(resp *response, cause error) error {
	return &ResponseError{Status: resp.status, RequestID: resp.requestID(), RetryAfter: resp.retryAfter(), request: resp.request.String(), err: cause}
}

func causeOf(resp *response) error {
	err := wire.ErrorOf(resp.status)
	switch {
	case resp.isUnsupported():
		return fmt.Errorf("the server does not offer this operation: %w", errors.ErrUnsupported)
	case resp.status == http.StatusTooManyRequests:
		return tooManyRequests(resp.retryAfter())
	case err == ErrUnauthorized, err == ErrForbidden:
		return err
	case err == relayer.ErrUnavailable, resp.isOfProxy():
		return fmt.Errorf("%w: %s", relayer.ErrUnavailable, resp.describe())
	case !resp.isFailure():
		return errors.New(resp.describe())
	}
	switch err {
	case relayer.ErrInvalid:
		return resp.validationError()
	case relayer.ErrNotFound:
		return notFoundError(resp)
	case relayer.ErrExists, relayer.ErrConflict:
		return err
	default:
		return errors.New(resp.describe())
	}
}

func tooManyRequests(wait time.Duration) error {
	if wait == 0 {
		return errors.New("too many requests")
	}
	return fmt.Errorf("too many requests: wait %s", wait)
}

// notFoundError distinguishes a missing relayer from a missing route.
func notFoundError(resp *response) error {
	if resp.isMissingRelayer() {
		return relayer.ErrNotFound
	}
	return fmt.Errorf("the base URL may be wrong (it ends before /api/v1): %s", resp.describe())
}

// unknownOutcome is a write whose outcome could not be determined.
type unknownOutcome struct {
	cause error
}

func (e *unknownOutcome) Error() string {
	return fmt.Sprintf("%v: %v", relayer.ErrOutcomeUnknown, e.cause)
}

// Unwrap hides the cause unless it is that of the context: ErrUnavailable, for example,
// promises that there was no effect.
func (e *unknownOutcome) Unwrap() []error {
	for _, done := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e.cause, done) {
			return []error{relayer.ErrOutcomeUnknown, done}
		}
	}
	return []error{relayer.ErrOutcomeUnknown}
}

// isPlain reports whether a request ID of a server can be printed.
func isPlain(id string) bool {
	return id != "" && len(id) <= 128 && strconv.Quote(id) == `"`+id+`"` && !strings.Contains(id, " ")
}
