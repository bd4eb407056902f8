package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// WithRequestLog logs every request after its response, at level Info: request ID,
// principal, method, route, status, body size and duration. The route is the matched
// pattern, and empty if the request was rejected before routing. Path and query are
// not logged, because clients may put secrets there; neither are headers and bodies.
// A panic in the logger's handler is recovered, and logged by the logger of
// [WithLogger].
func WithRequestLog(logger *slog.Logger) Option {
	return func(a *API) error {
		if logger == nil {
			return errors.New("httpapi: request logger is nil")
		}
		a.requestLogger = logger
		return nil
	}
}

// loggedMethod returns the method for a log, or "other": a client can send any text
// as the method.
func loggedMethod(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	default:
		return "other"
	}
}

// logRequest logs a request after its response.
func (a *API) logRequest(x *exchange, r *http.Request) {
	if a.requestLogger == nil || !x.responded {
		return
	}
	// The logger's handler is code of the host. After a panic net/http would drop a
	// response that is already written, even that of a create that is committed.
	defer func() {
		if cause := recover(); cause != nil {
			a.logFault(x, r, fmt.Errorf("request log: %w", &panicError{cause, debug.Stack()}))
		}
	}()
	a.requestLogger.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("request_id", x.requestID),
		slog.String("principal", x.principal),
		slog.String("method", loggedMethod(r)),
		slog.String("route", x.route),
		slog.Int("status", x.status),
		slog.Int("bytes", x.bytes),
		slog.Duration("took", time.Since(x.received)),
	)
}
