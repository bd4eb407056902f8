package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/go-relayer/relayer"
)

// ErrNoSchema reports that the schema is missing or older than this package, and
// that [WithoutSetup] forbids creating or upgrading it.
var ErrNoSchema = errors.New("no relayer schema")

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// Codes of the server that matter here, and a class of them.
const (
	connectionException  = "08"
	completionUnknown    = "40003"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	idleInTransaction    = "25P03"
	readOnlyTransaction  = "25006"
	featureNotSupported  = "0A000"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	duplicateTable       = "42P07"
	duplicateFunction    = "42723"
	duplicateObject      = "42710"
	noPrivilege          = "42501"
	undefinedObject      = "42704"

	undefinedPrepared = "26000"
	duplicatePrepared = "42P05"
)

func unavailable(cause error) error {
	if errors.Is(cause, relayer.ErrUnavailable) {
		return cause
	}
	return fmt.Errorf("%w: %w", relayer.ErrUnavailable, withoutDriver(cause))
}

func outcomeUnknown(cause error) error {
	return fmt.Errorf("%w: %w", relayer.ErrOutcomeUnknown, withoutDriver(cause))
}

// hasCode tells whether the server refused a statement with one of these codes.
func hasCode(err error, codes ...string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if refusal.Code == code {
			return true
		}
	}
	return false
}

// isRefusal tells whether the server has answered with an error and goes on: so
// that nothing of the transaction stands. An error that ends the session says
// less, and so does one of a connection, which is a pooler's word for a session
// that it has lost.
func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && severity(refusal) == "ERROR" &&
		!strings.HasPrefix(refusal.Code, connectionException) && refusal.Code != completionUnknown
}

func severity(refusal *pgconn.PgError) string {
	if refusal.SeverityUnlocalized != "" {
		return refusal.SeverityUnlocalized
	}
	return refusal.Severity
}

// isOfContent tells whether the server refused what a statement would write, and
// not, for how it stands itself, any write.
func isOfContent(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(refusal.Code) != 5 {
		return false
	}
	switch refusal.Code[:2] {
	case "22", "23", "44", "54", "P0": // data, integrity, views, limits, triggers
		return true
	}
	return false
}

// isOfStatement reports whether the server refused a statement itself: it refers to
// something that does not exist or that the role may not use.
func isOfStatement(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(refusal.Code, "42")
}

// isOfStandby reports whether the server refused a statement because it is a standby.
// A plan that the server cannot use any more has the same code; a new connection is
// right for it as well.
func isOfStandby(err error) bool { return hasCode(err, readOnlyTransaction, featureNotSupported) }

// isPassing tells whether the same again may well succeed: transactions that
// got into each other's way, or a connection that was lost.
func isPassing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, relayer.ErrNewerFormat) {
		return false
	}
	if hasCode(err, serializationFailure, deadlockDetected) || isOfStandby(err) {
		return true
	}
	return !isRefusal(err)
}

// isLasting tells whether a read fails as it did however often it is tried.
func isLasting(err error) bool {
	if errors.Is(err, errClosed) || errors.Is(err, relayer.ErrNewerFormat) || hasCode(err, noPrivilege) {
		return true
	}
	_, cannotBeRead := errors.AsType[pgx.ScanArgError](err)
	return cannotBeRead
}

// withoutDriver keeps what an error of the driver says, on one line, and leaves
// its type behind. Of what the server says that is the message alone: the details
// may quote the row.
func withoutDriver(err error) error {
	if errors.Is(err, relayer.ErrUnknownFormat) || errors.Is(err, relayer.ErrNewerFormat) {
		return err
	}
	message := strings.Join(strings.Fields(err.Error()), " ")
	if hasCode(err, undefinedPrepared, duplicatePrepared) {
		message += "; a connection pooler in transaction mode needs default_query_exec_mode=cache_describe in the connection string"
	}
	return errors.New(message)
}
