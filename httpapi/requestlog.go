package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// WithRequestLog logs every request after its response, at level Info: request ID,
// principal, method, route, relayer ID, status, body size and duration. The principal is
// the ID of the actor. The route is the matched pattern, and empty if the request was
// rejected before routing. The relayer ID is empty if no relayer can have it or the
// response is 404. Path and query are not logged, because clients may put secrets there;
// neither are headers and bodies. A panic in the logger's handler is recovered, and logged
// by the logger of [WithLogger].
func WithRequestLog(logger *slog.Logger) Option {
	return Option{func(s *settings) error {
		if logger == nil {
			return errors.New("httpapi: request logger is nil")
		}
		s.requestLogger = logger
		return nil
	}}
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

// loggedID returns a relayer ID for a log, or "": the path of a request may have any text in
// its place.
func loggedID(id string) string {
	if !relayer.IsID(id) {
		return ""
	}
	return id
}

func (a *API) logRequest(x *exchange, r *http.Request) {
	if a.requestLogger == nil || x.status == 0 {
		return
	}
	id := loggedID(x.relayerID)
	if x.status == http.StatusNotFound {
		id = ""
	}
	// The logger's handler is code of the host. After a panic net/http would drop a
	// response that is already written, even that of a create that is committed.
	defer func() {
		if cause := recover(); cause != nil {
			a.logFault(x, r, fmt.Errorf("request log: %w", &panicError{cause, debug.Stack()}))
		}
	}()
	a.requestLogger.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("request_id", x.actor.RequestID),
		slog.String("principal", x.actor.ID),
		slog.String("method", loggedMethod(r)),
		slog.String("route", x.route),
		slog.String("relayer_id", id),
		slog.Int("status", x.status),
		slog.Int("bytes", x.bytes),
		slog.Duration("took", time.Since(x.received)),
	)
}

// logSealed logs why RPC URLs could not be opened, at most once a minute for each relayer.
// That a later change has replaced them is no fault.
func (a *API) logSealed(x *exchange, documents ...relayer.Document) {
	for i := range documents {
		d := &documents[i]
		isFault := errors.Is(d.SealError, relayer.ErrSealed) || errors.Is(d.SealError, relayer.ErrCorrupt)
		if !isFault || a.warnings.take("sealed "+d.ID) > 0 {
			continue
		}
		a.log(x, slog.LevelWarn, "RPC URLs cannot be opened",
			slog.String("request_id", x.actor.RequestID),
			slog.String("relayer_id", d.ID),
			slog.String("error", mask.Text(d.SealError.Error())))
	}
}

// log calls the logger of the host. If its handler panics, there is no other logger to
// report to.
func (a *API) log(ctx context.Context, level slog.Level, message string, attributes ...slog.Attr) {
	defer func() { _ = recover() }()
	a.logger.LogAttrs(ctx, level, message, attributes...)
}
