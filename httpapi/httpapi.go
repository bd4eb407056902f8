// Package httpapi serves a relayer registry over HTTP: the /api/v1 endpoints
// that the official OpenZeppelin Relayer clients call.
//
//	GET    /api/v1/relayers               a page of relayers, oldest first
//	POST   /api/v1/relayers               create a relayer
//	GET    /api/v1/relayers:watch         the changes of relayers, as Server-Sent Events
//	GET    /api/v1/relayers:history       the changes of the past, newest first
//	POST   /api/v1/relayers:pause         pause the relayers that the filters select
//	POST   /api/v1/relayers:resume        resume the relayers that the filters select
//	GET    /api/v1/relayers/{relayer_id}  one relayer
//	PATCH  /api/v1/relayers/{relayer_id}  change a relayer by a JSON Merge Patch
//	DELETE /api/v1/relayers/{relayer_id}  delete a relayer
//	GET    /api/v1/relayers/{relayer_id}/history  its changes, newest first
//	GET    /api/v1/access                 what the caller may do
//	GET    /api/v1/openapi.json           the OpenAPI 3.1 description of the API
//
// With [WithEngineOperations] also:
//
//	PUT    /api/v1/relayers/{relayer_id}/disabled_reason  disable a relayer
//	DELETE /api/v1/relayers/{relayer_id}/disabled_reason  enable a relayer
//
// and a get, a list and a change stream return full RPC URLs with rpc_urls=full.
//
// A list, a change stream, a pause and a resume take the keys of [relayer.Selector] as query parameters,
// each any number of times:
//
//	GET /api/v1/relayers?network=sepolia&label.team=payments&label.team=risk
//
// docs/http.md describes every parameter, header, event, status and limit.
//
// [New] returns an [API], an [http.Handler] that works at / and, with [http.StripPrefix],
// under any prefix. It starts no goroutine that outlives a request, except to log refusals up to a
// second later. It has no global state, and logs only if it is given a logger.
//
// # Change stream
//
// A change stream has the feed of [relayer.Manager.Watch] as Server-Sent Events, whose ids are the
// positions of changes. It resumes behind the Last-Event-ID of a request, the id of an event or the
// position of a list with a cursor, if the filters and the permission are the same. Otherwise, and
// at a gap ([relayer.ErrGap]), it sends the event resync: the client must read all relayers again.
//
// A stream ends if the [Authenticator] or the [Authorizer] no longer permits it, if its
// permission is for other relayers, if the client does not read for 10 seconds, if the store
// is unreachable for longer than 15 seconds, above [WithMaxPendingBytes], and on [API.Drain].
// The client then connects again with the last id. The [http.ResponseWriter] must support the
// Flush, SetReadDeadline and SetWriteDeadline of [http.ResponseController].
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
	forbidden        refusals
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

// WithEngineOperations adds the operations of a relaying engine in another process: it
// reads the full RPC URLs with the query parameter rpc_urls=full of a get, a list and a stream
// ([relayer.ActionReveal]), and disables and enables relayers ([relayer.ActionDisable],
// [relayer.ActionEnable]). Without it the parameter and the paths are unknown. With it every
// caller may use them, unless an [Authorizer] refuses: permit them only to engines. The logger
// of [WithLogger] gets a line for every permitted request for full RPC URLs, and counts the
// others.
func WithEngineOperations() Option {
	return option(true, "", func(s *settings) { s.engineOperations = true })
}

// New returns the handler that serves the relayers of the manager. The Authenticator
// decides who may call it and is required. New returns an error if an argument is missing
// or invalid.
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
			forbidden:    refusals{entries: make(map[string]*repeated)},
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
