// Package wire has what packages httpapi, client, plan and mirror share.
package wire

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// Errors that only HTTP has. Package client exports both; httpapi exports ErrUnauthorized.
var (
	ErrUnauthorized = errors.New("the credentials are not accepted")
	ErrForbidden    = errors.New("the operation is not permitted")
)

// statuses is the table of errors and statuses. Status uses the first row that matches an
// error. It must report an unknown outcome before other errors, which promise that the
// operation had no effect. ErrorOf uses the first row with a status.
var statuses = []struct {
	err    error
	status int
}{
	{relayer.ErrOutcomeUnknown, http.StatusInternalServerError},
	{relayer.ErrUnavailable, http.StatusServiceUnavailable},
	{relayer.ErrInvalid, http.StatusBadRequest},
	{relayer.ErrInvalid, http.StatusRequestEntityTooLarge},
	{relayer.ErrInvalid, http.StatusUnsupportedMediaType},
	{ErrUnauthorized, http.StatusUnauthorized},
	{ErrForbidden, http.StatusForbidden},
	{relayer.ErrNotFound, http.StatusNotFound},
	{relayer.ErrExists, http.StatusConflict},
	{relayer.ErrConflict, http.StatusPreconditionFailed},
}

// Status returns the status of a response to err. It reports false if the table has no
// status for err.
func Status(err error) (status int, ok bool) {
	for _, row := range statuses {
		if errors.Is(err, row.err) {
			return row.status, true
		}
	}
	return 0, false
}

// ErrorOf returns the error for a status, or nil if the table has none.
func ErrorOf(status int) error {
	for _, row := range statuses {
		if row.status == status {
			return row.err
		}
	}
	return nil
}

// Message returns the message of a failure. id is the ID of the relayer in the path, or empty.
func Message(status int, id string) string {
	switch {
	case status == http.StatusNotFound && id != "":
		return "Relayer with ID " + mask.Field(id) + " not found"
	case status == http.StatusConflict:
		return "Relayer with this ID already exists"
	case errors.Is(ErrorOf(status), relayer.ErrInvalid):
		return http.StatusText(http.StatusBadRequest)
	default:
		return http.StatusText(status)
	}
}

// IgnoredParameter returns the warning that a query parameter is unknown.
func IgnoredParameter(name string) string {
	return fmt.Sprintf("the query parameter %q is unknown and was ignored", name)
}
