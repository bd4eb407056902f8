// Package httpapi serves a relayer registry over HTTP: the /api/v1 endpoints
// that the official OpenZeppelin Relayer clients speak.
//
//	GET    /api/v1/relayers               a page of relayers, oldest first
//	POST   /api/v1/relayers               create a relayer
//	GET    /api/v1/relayers/{relayer_id}  one relayer
//	PATCH  /api/v1/relayers/{relayer_id}  change a relayer by a JSON Merge Patch
//	DELETE /api/v1/relayers/{relayer_id}  delete a relayer
//	GET    /api/v1/openapi.json           the description of all this, in OpenAPI 3.1
//
// [New] returns an [http.Handler] that works at / and, under
// [http.StripPrefix], below any other path. It starts no goroutine, keeps
// nothing global, and logs nothing unless it is given a logger.
//
// Every response but the OpenAPI document is a JSON object with a success
// member: a [relayer.Envelope] or a [relayer.Failure].
package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-relayer/relayer"
)

// DefaultMaxBodyBytes is the largest request body taken, unless
// [WithMaxBodyBytes] says otherwise.
const DefaultMaxBodyBytes = 1 << 20

// Option sets up the handler that [New] returns.
type Option struct {
	apply func(*api) error
}

// WithLogger has faults of the server's own logged: the cause of every 500, and
// of every 503 but those of [WithMaxInFlight], with the request id that the response carries. No token, no RPC URL and
// no body is ever logged.
func WithLogger(logger *slog.Logger) Option {
	return Option{func(a *api) error {
		if logger == nil {
			return errors.New("httpapi: logger is nil")
		}
		a.logger = logger
		return nil
	}}
}

// WithMaxBodyBytes sets the largest request body taken, in bytes, at least 1.
func WithMaxBodyBytes(most int64) Option {
	return Option{func(a *api) error {
		if most < 1 {
			return errors.New("httpapi: the largest body must be 1 byte or more")
		}
		a.maxBodyBytes = most
		return nil
	}}
}

// New returns the handler that serves the manager's relayers. There is no
// default for who may call it: auth is one of [Tokens], [AuthFunc] and
// [TrustHost]. It returns an error where an argument is missing or wrong.
func New(manager *relayer.Manager, auth Authenticator, options ...Option) (http.Handler, error) {
	if manager == nil {
		return nil, errors.New("httpapi: manager is nil")
	}
	if err := checkAuthenticator(auth); err != nil {
		return nil, err
	}
	a := &api{
		manager:      manager,
		auth:         auth,
		guesses:      newGuesses(),
		limiter:      newRateLimiter(DefaultRate, DefaultBurst),
		inFlight:     inFlight{most: DefaultMaxInFlight},
		maxBodyBytes: DefaultMaxBodyBytes,
		logger:       slog.New(slog.DiscardHandler),
		openAPI:      true,
		buffers:      sync.Pool{New: func() any { return new([]byte) }},
	}
	for _, option := range options {
		if option.apply == nil {
			return nil, errors.New("httpapi: the zero Option is none")
		}
		if err := option.apply(a); err != nil {
			return nil, err
		}
	}
	a.routes = a.newRoutes()
	return a, nil
}
