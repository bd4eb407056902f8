// Package httpapi serves a relayer registry over HTTP: the /api/v1 endpoints
// that the official OpenZeppelin Relayer clients call.
//
//	GET    /api/v1/relayers               a page of relayers, oldest first
//	POST   /api/v1/relayers               create a relayer
//	GET    /api/v1/relayers:watch         the changes of all relayers, as Server-Sent Events
//	GET    /api/v1/relayers/{relayer_id}  one relayer
//	PATCH  /api/v1/relayers/{relayer_id}  change a relayer by a JSON Merge Patch
//	DELETE /api/v1/relayers/{relayer_id}  delete a relayer
//	GET    /api/v1/openapi.json           the OpenAPI 3.1 description of the API
//
// [New] returns an [API], an [http.Handler] that works at / and, with [http.StripPrefix],
// under any prefix. It starts no goroutine that outlives a request, has no global
// state, and logs only if it is given a logger.
//
// Every response except the OpenAPI document and the change stream is a JSON object
// with a success member: a [relayer.Envelope] or a [relayer.Failure].
//
// # Change stream
//
// A change stream is a response that carries the change feed of [relayer.Manager.Watch].
// The id of an event is the position of the change, its name is the kind (created,
// updated or deleted), and its data is
//
//	{"etag":"\"42\"","relayer":{...}}
//
// with the relayer after the change, as a get returns it, or its last state if it was
// deleted. The event resync reports a gap ([relayer.ErrGap]): the client must read all
// relayers again. It is the first event, unless the request has a
// Last-Event-ID from which the store can resume. A comment follows every 15 seconds.
//
// A stream ends if its token or the authorizer no longer permits it, if the client does
// not read for 10 seconds, above [WithMaxPendingBytes], and on [API.Drain]. The client then
// connects again with the id of the last event. The [http.ResponseWriter] must support the Flush,
// SetReadDeadline and SetWriteDeadline of [http.ResponseController].
package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/go-relayer/relayer"
)

// defaultMaxBodyBytes is the size limit of [WithMaxBodyBytes] if it is not set.
const defaultMaxBodyBytes = 1 << 20

// Option configures the handler that [New] returns.
type Option func(*API) error

// WithLogger logs the cause of every 500 and of every 503, with the request ID of the
// response. The 503 of [WithMaxInFlight], [WithMaxPendingBytes], [WithMaxWatchers] and
// [API.Drain] are not logged. Tokens, RPC URLs and bodies are never logged. A panic in the
// logger's handler is recovered and does not change the response.
func WithLogger(logger *slog.Logger) Option {
	return func(a *API) error {
		if logger == nil {
			return errors.New("httpapi: logger is nil")
		}
		a.logger = logger
		return nil
	}
}

// WithMaxBodyBytes sets the maximum size of a request body in bytes, at least 1.
// The default is 1 MiB. A larger body is rejected with 413.
func WithMaxBodyBytes(limit int64) Option {
	return func(a *API) error {
		if limit < 1 {
			return errors.New("httpapi: the body limit must be at least 1 byte")
		}
		a.maxBodyBytes = limit
		return nil
	}
}

// New returns the handler that serves the relayers of the manager. auth decides
// who may call it and is required: one of [Tokens], [AuthFunc] and [TrustHost].
// New returns an error if an argument is missing or invalid.
func New(manager *relayer.Manager, auth Authenticator, options ...Option) (*API, error) {
	if manager == nil {
		return nil, errors.New("httpapi: manager is nil")
	}
	if err := checkAuthenticator(auth); err != nil {
		return nil, err
	}
	a := &API{
		manager:      manager,
		auth:         auth,
		guesses:      newGuessLimiter(),
		readLimiter:  newRateLimiter(DefaultRate, DefaultBurst),
		inFlight:     capacity{limit: defaultMaxInFlight},
		watchers:     capacity{limit: defaultMaxWatchers},
		pending:      capacity{limit: defaultMaxPendingBytes},
		pageSlots:    make(chan struct{}, maxPageBuilds),
		maxBodyBytes: defaultMaxBodyBytes,
		logger:       slog.New(slog.DiscardHandler),
		buffers:      sync.Pool{New: func() any { return new([]byte) }},
	}
	a.draining, a.drain = context.WithCancel(context.Background())
	for _, option := range options {
		if option == nil {
			return nil, errors.New("httpapi: option is nil")
		}
		if err := option(a); err != nil {
			return nil, err
		}
	}
	a.mux = newMux(a.routes())
	return a, nil
}
