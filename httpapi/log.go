package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
)

// WithLogger logs the cause of every 500 and of every 503, with the request ID of the response,
// except for [API.Drain] and limits. Requests that an [Authorizer] refuses get at most one line a
// second for each actor and action, with their number. Requests that a limit refuses with 503 get
// about one a minute for each limit and actor: [API.Refusals] counts these. RPC URLs are masked.
// Only errors of the host can quote tokens or bodies. A panic in the logger's handler does not
// change the response.
func WithLogger(logger *slog.Logger) Option {
	return option(logger != nil, "logger is nil", func(s *settings) { s.logger = logger })
}

// WithRequestLog logs every request after its response, at level Info: request ID, principal,
// address, method, route, relayer ID, status, body size and duration. The principal is the ID of
// the actor. The route is the matched pattern, and empty if the request was rejected before
// routing. The relayer ID is empty if no relayer can have it or the response is 404. Nothing else
// of the request is logged, because clients may put secrets there. A panic in the logger's
// handler does not change the response.
func WithRequestLog(logger *slog.Logger) Option {
	return option(logger != nil, "request logger is nil", func(s *settings) { s.requestLogger = logger })
}

func (a *API) logRequest(x *exchange) {
	if a.requestLogger == nil || x.status == 0 {
		return
	}
	id := loggedID(x.relayerID)
	if x.status == http.StatusNotFound {
		id = ""
	}
	write(x.Context, a.requestLogger, slog.LevelInfo, "request", x.logged(
		slog.String("relayer_id", id),
		slog.Int("status", x.status),
		slog.Int("bytes", x.bytes),
		slog.Duration("took", time.Since(x.received))))
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
// hook may quote an RPC URL. The level is debug if the cause is the end of the context: the
// client is gone or a deadline of the host has passed.
func (a *API) logFault(x *exchange, err error, more ...slog.Attr) {
	level := slog.LevelError
	if ended := x.Err(); ended != nil && errors.Is(err, ended) {
		level = slog.LevelDebug
	}
	a.log(x, level, "request failed", append([]slog.Attr{slog.String("error", mask.Text(err.Error()))}, more...)...)
}

// repeated is the number of refusals since the last line, and the line about the latest of them.
type repeated struct {
	count int
	line  []slog.Attr
}

// logForbidden logs a refusal. An actor that repeats a refused request could fill the log, so each
// actor and action has one line a second, with the number of refusals.
func (a *API) logForbidden(x *exchange, action relayer.Action) {
	key := string(action) + " " + x.actor.ID
	line := x.logged(slog.String("action", string(action)), slog.String("relayer_id", loggedID(x.relayerID)))
	a.forbiddenMu.Lock()
	defer a.forbiddenMu.Unlock()
	if entry := a.forbidden[key]; entry != nil {
		entry.count, entry.line = entry.count+1, line
		return
	}
	a.writeForbidden(x.Context, key, line, 1)
}

// writeForbidden writes a line, and the next one after a second or on [API.Drain] if there are
// refusals until then.
func (a *API) writeForbidden(ctx context.Context, key string, line []slog.Attr, count int) {
	write(ctx, a.logger, slog.LevelInfo, "request forbidden", append(line, slog.Int("count", count)))
	next := new(repeated)
	a.forbidden[key] = next
	second, cancel := context.WithTimeout(a.draining, time.Second)
	context.AfterFunc(second, func() {
		cancel()
		a.forbiddenMu.Lock()
		defer a.forbiddenMu.Unlock()
		if delete(a.forbidden, key); next.count > 0 {
			a.writeForbidden(context.Background(), key, next.line, next.count)
		}
	})
}

// logSealed logs why RPC URLs could not be opened, once a minute for each of up to 10,000
// relayers. That a later change has replaced them is no fault.
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

// log logs a line about the request.
func (a *API) log(x *exchange, level slog.Level, message string, attributes ...slog.Attr) {
	write(x.Context, a.logger, level, message, x.logged(attributes...))
}

// logged returns the attributes of a line about the request.
func (x *exchange) logged(attributes ...slog.Attr) []slog.Attr {
	return append([]slog.Attr{
		slog.String("request_id", x.actor.RequestID),
		slog.String("principal", x.actor.ID),
		slog.String("address", x.actor.Address),
		slog.String("method", mask.Shortened(x.request.Method, len(http.MethodOptions))), // clients can send any text
		slog.String("route", x.route),
	}, attributes...)
}

// write writes a line. The handler of a logger is code of the host: if it panics, a response that is
// already written, even to a committed create, must not be dropped.
func write(ctx context.Context, logger *slog.Logger, level slog.Level, message string, attributes []slog.Attr) {
	defer func() { _ = recover() }()
	logger.LogAttrs(ctx, level, message, attributes...)
}
