package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/go-relayer/relayer"
)

// errNoSchema reports that the schema is missing, and that [WithoutSetup] forbids creating it.
var errNoSchema = errors.New("no relayer schema")

// errDropped is the error of a write that the server accepted but did not carry out. Its
// transaction must be rolled back: it has a part of the write.
var errDropped = errors.New("PostgreSQL did not store the row: a trigger or row-level security dropped it")

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// SQLSTATE codes, and a class of them.
const (
	connectionException  = "08"
	warningCode          = "01000"
	completionUnknown    = "40003"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	idleInTransaction    = "25P03"
	readOnlyTransaction  = "25006"
	featureNotSupported  = "0A000"
	lockNotAvailable     = "55P03"
	tooManyConnections   = "53300"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	undefinedFunction    = "42883"
	programLimitExceeded = "54000"
	duplicateTable       = "42P07"
	duplicateFunction    = "42723"
	duplicateObject      = "42710"
	undefinedObject      = "42704"
	invalidParameter     = "22023"
	divisionByZero       = "22012"
	syntaxError          = "42601"
	cannotChangeNow      = "55P02"

	// noHistory is raised by a function of the schema.
	noHistory = "RH000"

	undefinedPrepared = "26000"
	duplicatePrepared = "42P05"
)

// passing are the SQLSTATE codes, and classes of them, of refusals that may pass.
var passing = []string{
	connectionException,
	"25P04", idleInTransaction, readOnlyTransaction, // the timeout of a transaction, a server that becomes a standby
	"40", // conflicts of transactions
	"53", // resources
	lockNotAvailable,
	"57", // intervention of an operator
}

// isFault reports whether the server refused something for a reason that does not pass, such
// as a privilege or a trigger, or returned what cannot be read.
func isFault(err error) bool {
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return !slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(refusal.Code, code) })
	}
	_, isUnreadable := errors.AsType[pgx.ScanArgError](err)
	return isUnreadable || mustRollBack(err)
}

// mustRollBack reports whether the statements succeeded, but stored only a part of a write.
func mustRollBack(err error) bool {
	_, isRefused := errors.AsType[importRefusal](err)
	return isRefused || errors.Is(err, errDropped)
}

// failed returns the error of an operation that has changed nothing. It is
// [relayer.ErrUnavailable], unless it is a fault, which a retry does not solve.
func failed(cause error) error {
	_, isRefused := errors.AsType[importRefusal](cause)
	switch {
	case isRefused || errors.Is(cause, relayer.ErrUnavailable):
		return cause
	case isFault(cause):
		return fmt.Errorf("postgres: %w", withoutDriver(cause))
	}
	return fmt.Errorf("%w: %w", relayer.ErrUnavailable, withoutDriver(cause))
}

func outcomeUnknown(cause error) error {
	return fmt.Errorf("%w: %w", relayer.ErrOutcomeUnknown, withoutDriver(cause))
}

func hasCode(err error, codes ...string) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, refusal.Code)
}

// isRefusal reports whether a write failed and the session continues, so the transaction is
// rolled back. An error that ends the session does not show that, nor does a connection
// exception, with which a pooler reports a session that it has lost.
func isRefusal(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return mustRollBack(err) || ok && cmp.Or(refusal.SeverityUnlocalized, refusal.Severity) == "ERROR" &&
		!strings.HasPrefix(refusal.Code, connectionException) && refusal.Code != completionUnknown
}

// isRefusedForEver reports whether the server refused a statement for a reason that does not
// pass, so that another statement may succeed.
func isRefusedForEver(err error) bool { return isRefusal(err) && isFault(err) }

// isStandbyError reports whether the server refused a statement because it is a
// standby. A cached plan that the server cannot use any more has the same code; a
// new connection solves that as well.
func isStandbyError(err error) bool { return hasCode(err, readOnlyTransaction, featureNotSupported) }

// errNoResponse is the error of an operation that has a connection. The driver's error says
// only that a deadline was exceeded.
var errNoResponse = errors.New("no response from the server")

// causeOf returns why ctx has ended a call that failed with err, or err.
func (s *Store) causeOf(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil || isRefusal(err):
		return err
	case context.Cause(ctx) == errFormerPrimary:
		return errFormerPrimary
	case ctx.Err() == context.DeadlineExceeded:
		return fmt.Errorf("%w within %v", errNoResponse, s.opts.timeout)
	}
	return err
}

// isTransient reports whether a repetition may succeed: after a serialization failure,
// a commit for whose notification the queue had no room, or a lost connection.
func isTransient(err error) bool {
	for _, final := range []error{errNoResponse, context.DeadlineExceeded, context.Canceled, relayer.ErrNewerFormat} {
		if errors.Is(err, final) {
			return false
		}
	}
	return hasCode(err, serializationFailure, deadlockDetected, programLimitExceeded) ||
		isStandbyError(err) || !isRefusal(err)
}

func isPermanent(err error) bool {
	_, isUnreadable := errors.AsType[pgx.ScanArgError](err)
	return isUnreadable || errors.Is(err, errClosed) || isRefusedForEver(err)
}

// withoutDriver returns an error with the message of a driver's error on one line, but not its
// type. The message does not include the details of the server, which may quote a row.
func withoutDriver(err error) error {
	if errors.Is(err, relayer.ErrNewerFormat) || errors.Is(err, errNoSchema) {
		return err
	}
	message := strings.Join(strings.Fields(err.Error()), " ")
	if hasCode(err, undefinedPrepared, duplicatePrepared) {
		message += "; a connection pooler in transaction mode needs default_query_exec_mode=cache_describe in the connection string"
	}
	return errors.New(message)
}
