package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// WithLogger logs the cause of every 500 and of every 503, what an [Authorizer] refuses, and what
// the limits of the server refuse, with the request ID of the response. Refusals of an Authorizer
// are logged with their number, at most once a second for each actor and action. Those of a limit are logged at most once a
// minute for each limit and actor, and [API.Refusals] counts them. The 503 of [API.Drain] are not
// logged. Tokens, RPC URLs and bodies are never logged. A panic in the logger's handler is
// recovered and does not change the response.
func WithLogger(logger *slog.Logger) Option {
	return Option{func(s *settings) error {
		if logger == nil {
			return errors.New("httpapi: logger is nil")
		}
		s.logger = logger
		return nil
	}}
}

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

func (a *API) logRequest(x *exchange) {
	if a.requestLogger == nil || x.status == 0 {
		return
	}
	id := loggedID(x.relayerID)
	if x.status == http.StatusNotFound {
		id = ""
	}
	// The logger's handler is code of the host. After a panic net/http would drop a
	// response that is already written, even the response to a committed create.
	defer func() {
		if cause := recover(); cause != nil {
			a.logFault(x, fmt.Errorf("request log: %w", &panicError{cause, debug.Stack()}))
		}
	}()
	a.requestLogger.LogAttrs(x.Context, slog.LevelInfo, "request",
		slog.String("request_id", x.actor.RequestID),
		slog.String("principal", x.actor.ID),
		slog.String("method", loggedMethod(x.request)),
		slog.String("route", x.route),
		slog.String("relayer_id", id),
		slog.Int("status", x.status),
		slog.Int("bytes", x.bytes),
		slog.Duration("took", time.Since(x.received)))
}

// loggedMethod returns the method for a log, or "other": clients can send any text, up to the
// limit of a header.
func loggedMethod(r *http.Request) string {
	if len(r.Method) > len(http.MethodOptions) {
		return "other"
	}
	return r.Method
}

// loggedID returns a relayer ID for a log, or "": the path of a request may have any text in
// its place.
func loggedID(id string) string {
	if !relayer.IsID(id) {
		return ""
	}
	return id
}

// logFault logs the cause of an error response, with all URLs masked: an error of a host's
// hook may quote an RPC URL. The level is debug if the context is done, because then the
// client is gone or a deadline of the host has passed.
func (a *API) logFault(x *exchange, err error) {
	level := slog.LevelError
	if x.Err() != nil {
		level = slog.LevelDebug
	}
	attributes := []slog.Attr{slog.String("error", mask.Text(err.Error()))}
	if panicked, ok := errors.AsType[*panicError](err); ok {
		attributes = append(attributes, slog.String("stack", string(panicked.stack)))
	}
	a.log(x, level, "request failed", attributes...)
}

// logSealed logs why RPC URLs could not be opened, at most once a minute for each relayer.
// That a later change has replaced them is no fault.
func (a *API) logSealed(x *exchange, documents ...relayer.Document) {
	for i := range documents {
		d := &documents[i]
		isFault := errors.Is(d.SealError, relayer.ErrSealed) || errors.Is(d.SealError, relayer.ErrCorrupt)
		if isFault && a.warnings.take("sealed "+d.ID) == 0 {
			a.log(x, slog.LevelWarn, "RPC URLs cannot be opened",
				slog.String("relayer_id", d.ID), slog.String("error", mask.Text(d.SealError.Error())))
		}
	}
}

// log logs a line about the request. If the handler of the host's logger panics, there is no
// other logger to report to.
func (a *API) log(x *exchange, level slog.Level, message string, attributes ...slog.Attr) {
	defer func() { _ = recover() }()
	a.logger.LogAttrs(x.Context, level, message, append([]slog.Attr{
		slog.String("request_id", x.actor.RequestID),
		slog.String("principal", x.actor.ID),
		slog.String("address", x.actor.Address),
		slog.String("method", loggedMethod(x.request)),
		slog.String("route", x.route),
	}, attributes...)...)
}
