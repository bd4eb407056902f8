package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// API is the handler of the /api/v1 endpoints. Create one with [New]. It is safe for
// concurrent use.
type API struct {
	settings
	manager      *relayer.Manager
	authenticate Authenticator
	draining     context.Context // done after Drain
	drain        context.CancelFunc
	mux          *http.ServeMux
	buffers      sync.Pool // of *[]byte, for response bodies
}

// exchange is the state of one request and its response. It is the [http.ResponseWriter] that the
// mux passes to the endpoints, and the context of the operations.
type exchange struct {
	http.ResponseWriter
	context.Context
	request   *http.Request
	actor     relayer.Actor // without an ID before the authentication
	route     string        // the matched pattern; empty before routing
	relayerID string        // in the path of one relayer, or of the created one
	input     input
	usage
	grant
	progress
}

// usage is what a request uses of the limits of the server.
type usage struct {
	caller       caller // that of the actor as soon as the request is authenticated
	inFlight     *limit // counts the request until it is released; nil afterwards
	isHeld       bool   // the request is in flight until its response has been written
	pendingBytes int64  // of the body, and later of the response
	buffer       *[]byte
}

// grant is what a request may do: the actions that need permission, and the view within the
// decisions of the authorizer about them.
type grant struct {
	actions []relayer.Action
	manager *relayer.Manager
	within  relayer.Selector
}

// progress is how far the request and its response are.
type progress struct {
	received time.Time
	status   int // of the response; 0 before it begins
	bytes    int // of its body
}

// Unwrap lets [http.ResponseController] reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// ServeHTTP handles a request. Authentication precedes routing, so that an
// unauthenticated caller cannot find out which paths exist. Only the OpenAPI
// document, which is the same on every server, needs no token.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{
		ResponseWriter: w, Context: r.Context(), request: r,
		actor:    relayer.Actor{RequestID: requestID(r.Header)},
		usage:    usage{buffer: a.buffers.Get().(*[]byte)},
		progress: progress{received: time.Now()},
	}
	defer a.putBuffer(x)
	defer a.logRequest(x)
	defer a.recoverPanic(x)
	defer x.releaseInFlight()
	defer func() { a.pending.add(x.caller, -x.pendingBytes) }()

	x.actor.Address = a.address(r)
	if !a.acquireInFlight(x, caller{address: x.actor.Address}) {
		return
	}
	// Only one spelling of the public path counts, so that no other path bypasses authentication.
	isPublic := r.URL.Path == openAPIPath && r.URL.RawPath == ""
	if !isPublic && !a.isAuthenticated(x) {
		return
	}
	if !isCleanPath(r) {
		// ServeMux would respond with a redirect in HTML.
		x.respond(failure(http.StatusNotFound))
		return
	}
	a.mux.ServeHTTP(x, r)
}

// requestID returns the X-Request-Id of the request if it is valid, or a new one. The ID is
// written to logs and to a response header, so only harmless characters are valid.
func requestID(header http.Header) string {
	isOther := func(r rune) bool {
		isAlphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !isAlphanumeric && !strings.ContainsRune("-_.:/+=@", r)
	}
	id := strings.Join(header["X-Request-Id"], " ") // a space is not valid
	isURL := strings.Contains(id, "://")            // which may have a secret
	if id == "" || len(id) > 128 || isURL || strings.ContainsFunc(id, isOther) {
		return rand.Text()
	}
	return id
}

// acquireInFlight counts the request in the share of the caller. If the share is used up, it
// responds and reports false.
func (a *API) acquireInFlight(x *exchange, by caller) bool {
	x.releaseInFlight()
	x.caller = by
	if !a.inFlight.tryAcquire(by, 1) {
		x.respond(a.refuse(x, a.inFlight))
		return false
	}
	x.inFlight = a.inFlight
	return true
}

// releaseInFlight makes room for another request. It is called before the response
// is written, so a client that reads slowly does not block others.
func (x *exchange) releaseInFlight() {
	if x.inFlight != nil {
		x.inFlight.add(x.caller, -1)
		x.inFlight = nil
	}
}

// isAuthenticated sets the actor of the request, or responds and reports false.
func (a *API) isAuthenticated(x *exchange) bool {
	actor, err := a.identify(x)
	if err != nil {
		x.respond(a.authFailure(x, err))
		return false
	}
	x.actor = actor
	x.Context = relayer.WithActor(x.Context, actor)
	return a.acquireInFlight(x, caller{actor: actor.ID})
}

func (a *API) identify(x *exchange) (relayer.Actor, error) {
	actor, err := a.authenticate(x.request)
	if err == nil && actor.ID == "" {
		err = errors.New("the authenticator returned an actor without an ID")
	}
	actor.RequestID, actor.Address = x.actor.RequestID, x.actor.Address
	return actor, err
}

func (a *API) authFailure(x *exchange, err error) response {
	if errors.Is(err, ErrUnauthorized) {
		return failure(http.StatusUnauthorized).withHeader("Www-Authenticate", challenge(x.request))
	}
	a.logFault(x, fmt.Errorf("authenticator: %w", err))
	return overloaded()
}

// isCleanPath reports whether ServeMux routes the path without a redirect.
func isCleanPath(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	clean := path.Clean(escaped)
	return clean[0] == '/' && (clean == escaped || clean != "/" && clean+"/" == escaped)
}

// errorResponse returns the response to a request that failed with err. It logs a fault of the
// server or of the host.
func (a *API) errorResponse(x *exchange, err error) response {
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return failure(http.StatusBadRequest, invalid.Fields...)
	}
	if errors.Is(err, relayer.ErrConflict) && len(conditions(x.request.Header)) == 0 {
		err = fmt.Errorf("%w: %w", relayer.ErrUnavailable, err) // contention: a later request may succeed
	}
	// The caller is authenticated and authorized, so that these are errors of a hook that
	// called another registry.
	isOfHook := errors.Is(err, wire.ErrUnauthorized) || errors.Is(err, wire.ErrForbidden)
	status, ok := wire.Status(err)
	if ok && status < http.StatusInternalServerError && !isOfHook {
		return response{status: status, body: encodeJSON(relayer.Envelope{Message: wire.Message(status, x.relayerID)})}
	}
	a.logFault(x, err)
	// The error counts before the context: a write may have taken effect, which its error
	// reports, although the context is done.
	if status == http.StatusServiceUnavailable || !ok && x.Err() != nil {
		return overloaded()
	}
	return failure(http.StatusInternalServerError)
}

// recoverPanic responds to a panic, for example in a hook of the host, with 500.
func (a *API) recoverPanic(x *exchange) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	a.logFault(x, fmt.Errorf("panic: %v", cause), slog.String("stack", string(debug.Stack())))
	if x.status != 0 {
		// A part of the response may be sent. Close the connection, so that the client
		// does not take it for a complete response.
		panic(http.ErrAbortHandler)
	}
	x.respond(failure(http.StatusInternalServerError))
}
