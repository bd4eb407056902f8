// Package httpapi serves a relayer registry over HTTP: the official OpenZeppelin Relayer clients
// create, get, list, update and delete with it. docs/http.md describes every path, parameter,
// event and status, and openapi.json every request and response.
//
// [New] returns an [API], an [http.Handler] that works at / and, with [http.StripPrefix], under
// any prefix. It starts no goroutine that outlives a request, except to log refusals up to a
// second later. It has no global state, and logs only if it is given a logger. [API.Drain] ends
// the change streams. Their [http.ResponseWriter] must support Flush, SetReadDeadline and
// SetWriteDeadline of [http.ResponseController].
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-relayer/relayer"
)

// Option configures the handler that [New] returns. The zero Option is invalid.
type Option struct {
	set func(*settings)
	err error // if an argument is invalid
}

func option(isValid bool, problem string, set func(*settings)) Option {
	if !isValid {
		return Option{err: errors.New("httpapi: " + problem)}
	}
	return Option{set: set}
}

type settings struct {
	authorize        Authorizer // nil: all is allowed
	authorizers      int        // that options have set
	address          func(*http.Request) string
	reads            *rate  // nil: no limit
	inFlight         *limit // in requests
	pages            *limit // that are built
	watchers         *limit // in streams
	bulk             *limit // in pauses and resumes of several relayers
	pending          *limit // in bytes
	warnings         *rate  // of repeated log lines
	forbiddenMu      sync.Mutex
	forbidden        map[string]*repeated // by action and actor that had a line in the last second
	maxBodyBytes     int64
	logger           *slog.Logger
	requestLogger    *slog.Logger // nil: requests are not logged
	engineOperations bool
}

// WithMaxBodyBytes sets the maximum size of a request body in bytes, at least 1.
// The default is 1 MiB. A larger body is rejected with 413.
func WithMaxBodyBytes(limit int64) Option {
	return option(limit >= 1, "the maximum of bytes of a body must be at least 1", func(s *settings) { s.maxBodyBytes = limit })
}

// WithEngineOperations adds the operations of a relaying engine in another process: it reads the
// full RPC URLs with the query parameter rpc_urls=full of a get, a list and a stream
// ([relayer.ActionReveal]), and disables and enables relayers ([relayer.ActionDisable],
// [relayer.ActionEnable]). Without it the parameter and the paths of disabled_reason are unknown.
// With it every caller may use them, unless an [Authorizer] refuses: permit them only to engines.
// [WithLogger] logs each valid request for full RPC URLs that is permitted, and refused ones.
func WithEngineOperations() Option {
	return option(true, "", func(s *settings) { s.engineOperations = true })
}

// New returns the handler that serves the relayers of the manager. The Authenticator decides who
// may call it and is required. New returns an error if an argument is missing or invalid.
func New(manager *relayer.Manager, authenticate Authenticator, options ...Option) (*API, error) {
	if manager == nil {
		return nil, errors.New("httpapi: manager is nil")
	}
	if authenticate == nil {
		return nil, errors.New("httpapi: no authenticator given: use Tokens, TrustHost or a function of the host")
	}
	a := &API{
		settings: settings{
			address:      connectionAddress,
			reads:        newRate(100, 300),
			inFlight:     newLimit("in_flight", 1024),
			pages:        newLimit("pages", 8),
			watchers:     newLimit("watchers", 1000),
			bulk:         newLimit("bulk", 8),
			pending:      newLimit("pending_bytes", 128<<20), // five pages of the largest relayers
			warnings:     newRate(1.0/60, 1),                 // one a minute
			forbidden:    make(map[string]*repeated),
			maxBodyBytes: 1 << 20,
			logger:       slog.New(slog.DiscardHandler),
		},
		manager:      manager,
		authenticate: authenticate,
		buffers:      sync.Pool{New: func() any { return new([]byte) }},
	}
	for _, option := range options {
		if option.set == nil {
			return nil, cmp.Or(option.err, errors.New("httpapi: option is empty"))
		}
		option.set(&a.settings)
	}
	if a.authorizers > 1 {
		return nil, errors.New("httpapi: a second authorizer would replace the first one: give one WithAuthorizer")
	}
	a.draining, a.drain = context.WithCancel(context.Background())
	a.mux = a.newMux()
	return a, nil
}
