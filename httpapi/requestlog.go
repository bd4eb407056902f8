package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"
)

// WithRequestLog has every request logged once it is answered, at level Info:
// its id, who sent it, what it asked for, the status, the size of the body and
// how long it took. What it asked for is the route, which a request that was
// refused before has none of, and not the path or the query, where clients put
// what they should not. No header and no body is ever logged.
func WithRequestLog(logger *slog.Logger) Option {
	return Option{func(a *api) error {
		if logger == nil {
			return errors.New("httpapi: request logger is nil")
		}
		a.requestLogger = logger
		return nil
	}}
}

// loggedMethod is a method as it is logged: clients may send any text as one.
func loggedMethod(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	default:
		return "other"
	}
}

// logRequest logs a request that began at a time and has been answered.
func (a *api) logRequest(x *exchange, r *http.Request, began time.Time) {
	if a.requestLogger == nil {
		return
	}
	// The logger's handler is code of the host. net/http would drop a response that
	// is already written, also that of a create that is stored.
	defer func() {
		if cause := recover(); cause != nil {
			a.logFault(x, r, fmt.Errorf("request log panicked: %v\n%s", cause, debug.Stack()))
		}
	}()
	a.requestLogger.LogAttrs(&x.ctx, slog.LevelInfo, "request",
		slog.String("request_id", x.requestID),
		slog.String("principal", x.principal),
		slog.String("method", loggedMethod(r)),
		slog.String("route", x.route),
		slog.Int("status", x.status),
		slog.Int("bytes", x.bytes),
		slog.Duration("took", time.Since(began)),
	)
}
