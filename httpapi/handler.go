package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
)

// api is the handler that [New] returns.
type api struct {
	manager       *relayer.Manager
	auth          Authenticator
	guesses       *guesses
	limiter       *rateLimiter // nil: no limit
	inFlight      inFlight
	maxBodyBytes  int64
	logger        *slog.Logger
	requestLogger *slog.Logger // nil: requests are not logged
	routes        *http.ServeMux
	openAPI       bool      // the OpenAPI document is served
	buffers       sync.Pool // of *[]byte, for bodies
}

// exchange is one request being answered. It is the [http.ResponseWriter] that
// the routes are given, so that what is known of the request travels with it.
type exchange struct {
	http.ResponseWriter
	ctx       requestContext
	requestID string
	principal string
	buffer    *[]byte

	// inFlight is where the request has a place, until it is left.
	inFlight *inFlight

	route    string // the pattern that matched; empty where none was tried
	answered bool
	status   int // of the answer
	bytes    int // of its body, as far as it was to be sent
}

// leave makes room for the next request. It comes before the answer is written: a
// client that reads slowly is in nobody's way.
func (x *exchange) leave() {
	if x.inFlight != nil {
		x.inFlight.leave()
		x.inFlight = nil
	}
}

// Unwrap lets [http.ResponseController] reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// ServeHTTP answers a request. Authentication comes first, so that a caller
// that is not let in learns nothing, not even which paths exist; the OpenAPI
// document, which is the same everywhere, tells nobody anything.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ResponseWriter: w, requestID: requestID(r.Header), buffer: a.buffers.Get().(*[]byte)}
	x.ctx.Context = r.Context()
	defer a.release(x)
	defer x.ctx.release()
	defer a.logRequest(x, r, time.Now())
	defer a.answerPanic(x, r)

	if !a.inFlight.enter() {
		x.answer(r, failure(http.StatusServiceUnavailable, messageUnavailable).with("Retry-After", "1"))
		return
	}
	x.inFlight = &a.inFlight
	defer x.leave()
	if a.isOpenAPI(r) {
		a.routes.ServeHTTP(x, r)
		return
	}
	if refusal := a.authenticate(x, r); refusal != nil {
		x.answer(r, *refusal)
		return
	}
	if !isCleanPath(r) {
		// ServeMux would answer with a redirect of its own, in HTML.
		x.answer(r, failure(http.StatusNotFound, messageNotFound))
		return
	}
	a.routes.ServeHTTP(x, r)
}

// authenticate finds out who is calling, or returns what to answer.
func (a *api) authenticate(x *exchange, r *http.Request) *response {
	principal, err := a.auth.authenticate(&x.ctx, r, a.guesses)
	if err != nil {
		refusal := a.refusal(x, r, err)
		return &refusal
	}
	x.principal = principal
	return nil
}

// isCleanPath tells whether ServeMux takes the path as it is.
func isCleanPath(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	clean := path.Clean(escaped)
	return clean[0] == '/' && (clean == escaped || clean != "/" && clean+"/" == escaped)
}

// answerPanic turns a panic, of a host's hook for example, into a 500.
func (a *api) answerPanic(x *exchange, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	a.logFault(x, r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	if x.answered {
		// Half a response is out already: break the connection rather than let
		// the client take it for a whole one.
		panic(http.ErrAbortHandler)
	}
	x.answer(r, failure(http.StatusInternalServerError, messageInternal))
}

// endpoint answers one operation.
type endpoint func(*exchange, *http.Request) response

// route is one operation: the method and path that it answers.
type route struct {
	method string
	path   string
	answer endpoint
}

// operations lists every route there is, so that what is served, what Allow
// says and what the OpenAPI document describes can be held against each other.
func (a *api) operations() []route {
	const (
		all = "/api/v1/relayers"
		one = "/api/v1/relayers/{relayer_id}"
	)
	routes := []route{
		{http.MethodGet, all, a.rated(a.list)},
		{http.MethodPost, all, a.create},
		{http.MethodGet, one, a.rated(a.get)},
		{http.MethodPatch, one, a.patch},
		{http.MethodDelete, one, a.remove},
	}
	if a.openAPI {
		routes = append(routes, route{http.MethodGet, openAPIPath, describe})
	}
	return routes
}

// allowedMethods returns the methods of each path. A GET answers HEAD too.
func allowedMethods(routes []route) map[string][]string {
	methods := make(map[string][]string)
	for _, route := range routes {
		methods[route.path] = append(methods[route.path], route.method)
		if route.method == http.MethodGet {
			methods[route.path] = append(methods[route.path], http.MethodHead)
		}
	}
	return methods
}

func (a *api) newRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, answer endpoint) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			x := w.(*exchange)
			x.route = r.Pattern
			x.answer(r, answer(x, r))
		})
	}
	routes := a.operations()
	for _, route := range routes {
		handle(route.method+" "+route.path, route.answer)
	}
	for path, methods := range allowedMethods(routes) {
		handle(path, methodNotAllowed(strings.Join(methods, ", ")))
	}
	handle("/", func(*exchange, *http.Request) response {
		return failure(http.StatusNotFound, messageNotFound)
	})
	return mux
}

func methodNotAllowed(allowed string) endpoint {
	return func(*exchange, *http.Request) response {
		return failure(http.StatusMethodNotAllowed, messageMethodNotAllowed).with("Allow", allowed)
	}
}

// rated lets an endpoint be called only within the principal's rate.
func (a *api) rated(answer endpoint) endpoint {
	return func(x *exchange, r *http.Request) response {
		if wait := a.limiter.wait(x.principal); wait > 0 {
			return tooManyRequests(wait)
		}
		return answer(x, r)
	}
}

func tooManyRequests(wait time.Duration) response {
	return failure(http.StatusTooManyRequests, messageTooManyRequests).with("Retry-After", retryAfter(wait))
}

// retryAfter is a wait in whole seconds, rounded up.
func retryAfter(wait time.Duration) string {
	seconds := int64(wait / time.Second)
	if wait%time.Second > 0 {
		seconds++
	}
	return strconv.FormatInt(seconds, 10)
}

// refusal answers a request that was not let in.
func (a *api) refusal(x *exchange, r *http.Request, err error) response {
	if limited, ok := errors.AsType[guessLimitError](err); ok {
		return tooManyRequests(limited.wait)
	}
	switch {
	case errors.Is(err, errNoToken):
		return failure(http.StatusUnauthorized, messageUnauthorized).with("Www-Authenticate", "Bearer")
	case errors.Is(err, errInvalidToken):
		return failure(http.StatusUnauthorized, messageUnauthorized).with("Www-Authenticate", `Bearer error="invalid_token"`)
	default:
		return a.failureOf(x, r, err)
	}
}

// failureOf answers a request that failed with err.
func (a *api) failureOf(x *exchange, r *http.Request, err error) response {
	var invalid *relayer.ValidationError
	switch {
	case errors.As(err, &invalid):
		return invalidRequest(http.StatusBadRequest, invalid.Fields...)
	case errors.Is(err, relayer.ErrExists):
		return failure(http.StatusConflict, messageExists)
	case isUnavailable(&x.ctx, err):
		a.logFault(x, r, err)
		return failure(http.StatusServiceUnavailable, messageUnavailable).with("Retry-After", "1")
	default:
		a.logFault(x, r, err)
		return failure(http.StatusInternalServerError, messageInternal)
	}
}

// isUnavailable tells whether err passes by itself: the store is out of reach,
// a crowd changes the same relayer, or the time for this request is over.
func isUnavailable(ctx context.Context, err error) bool {
	return errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrConflict) || ctx.Err() != nil
}

// logFault logs what the response does not say. A client that went away is
// nobody's fault.
func (a *api) logFault(x *exchange, r *http.Request, err error) {
	level := slog.LevelError
	if x.ctx.Err() != nil {
		level = slog.LevelDebug
	}
	// The logger's handler is code of the host. A panic in it has no other place to
	// be reported.
	defer func() { _ = recover() }()
	a.logger.LogAttrs(&x.ctx, level, "request failed",
		slog.String("request_id", x.requestID),
		slog.String("principal", x.principal),
		slog.String("method", loggedMethod(r)),
		slog.String("route", x.route),
		slog.String("error", err.Error()),
	)
}
