package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
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
	histories    actorLocks
	forbidden    forbiddenRequests
}

// exchange is the state of one request and its response. It is the
// [http.ResponseWriter] that the mux passes to the endpoints, and the context of the
// operations.
type exchange struct {
	http.ResponseWriter
	context.Context
	received  time.Time
	actor     relayer.Actor // without an ID before the authentication
	route     string        // the matched pattern; empty before routing
	relayerID string        // in the path of one relayer, or of the created one
	query     query
	usage
	grant
	sent
}

// usage is what a request uses of the limits of the server.
type usage struct {
	caller       caller // that of the actor as soon as the request is authenticated
	inFlight     *limit // counts the request until it is released; nil afterwards
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

// sent is how far a response is.
type sent struct {
	status     int  // 0 before it begins
	bytes      int  // of the body
	isBodyRead bool // that of the request, to its end
}

// Unwrap lets [http.ResponseController] reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// releaseInFlight makes room for another request. It is called before the response
// is written, so that a client that reads slowly does not block others.
func (x *exchange) releaseInFlight() {
	if x.inFlight != nil {
		x.inFlight.add(x.caller, -1)
		x.inFlight = nil
	}
}

// ServeHTTP handles a request. Authentication precedes routing, so that an
// unauthenticated caller cannot find out which paths exist. Only the OpenAPI
// document, which is the same on every server, needs no token.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{
		ResponseWriter: w, Context: r.Context(), received: time.Now(),
		actor: relayer.Actor{RequestID: requestID(r.Header)},
		usage: usage{buffer: a.buffers.Get().(*[]byte)},
	}
	defer a.putBuffer(x)
	defer a.logRequest(x, r)
	defer a.recoverPanic(x, r)

	x.actor.Address = a.address(r)
	x.caller = caller{address: x.actor.Address}
	if !a.inFlight.tryAcquire(x.caller, 1) {
		x.respond(r, a.refuse(x, r, a.inFlight))
		return
	}
	x.inFlight = a.inFlight
	defer x.releaseInFlight()
	defer func() { a.pending.add(x.caller, -x.pendingBytes) }()

	a.serve(x, r)
}

func (a *API) serve(x *exchange, r *http.Request) {
	if isOpenAPI(r) {
		a.mux.ServeHTTP(x, r)
		return
	}
	actor, err := a.identify(x, r)
	if err != nil {
		x.respond(r, a.authFailure(x, r, err))
		return
	}
	x.actor = actor
	x.Context = relayer.WithActor(x.Context, actor)
	x.releaseInFlight()
	x.caller = caller{actor: actor.ID}
	if !a.inFlight.tryAcquire(x.caller, 1) {
		x.respond(r, a.refuse(x, r, a.inFlight))
		return
	}
	x.inFlight = a.inFlight
	if !isCleanPath(r) {
		// ServeMux would respond with a redirect in HTML.
		x.respond(r, failure(http.StatusNotFound))
		return
	}
	a.mux.ServeHTTP(x, r)
}

func (a *API) identify(x *exchange, r *http.Request) (relayer.Actor, error) {
	actor, err := a.authenticate(r)
	if err == nil && actor.ID == "" {
		err = errors.New("the authenticator returned an actor without an ID")
	}
	actor.RequestID, actor.Address = x.actor.RequestID, x.actor.Address
	return actor, err
}

// isCleanPath reports whether ServeMux routes the path without a redirect.
func isCleanPath(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	clean := path.Clean(escaped)
	return clean[0] == '/' && (clean == escaped || clean != "/" && clean+"/" == escaped)
}

// recoverPanic responds to a panic, for example in a hook of the host, with 500.
func (a *API) recoverPanic(x *exchange, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	a.logFault(x, r, &panicError{cause, debug.Stack()})
	if x.status != 0 {
		// A part of the response may be sent. Close the connection, so that the client
		// does not take it for a complete response.
		panic(http.ErrAbortHandler)
	}
	x.respond(r, failure(http.StatusInternalServerError))
}

// endpoint handles the requests of one route. It returns the response, unless it has
// sent it.
type endpoint func(*exchange, *http.Request) response

// route is a method and a path, and what applies to their requests.
type route struct {
	method string
	path   string
	action relayer.Action // that needs permission; empty: permitted to every caller
	handle endpoint

	parameters       []parameter // of the query
	hasFilters       bool        // the keys of a selector are parameters too
	ignoresMalformed bool        // of the query, because it is not essential
	limit            *limit      // of the requests that are handled at once, or nil
	isStream         bool
	isPublic         bool // needs no token
}

const (
	collection = "/api/v1/relayers"
	single     = collection + "/{relayer_id}"
	accessPath = "/api/v1/access"
)

// routes returns all routes. The mux, the Allow header and the test of the OpenAPI
// document use this one table.
func (a *API) routes() []route {
	read := []parameter{{"changes", isFlag}}
	if a.engineOperations {
		read = append(read, parameter{"rpc_urls", isFull})
	}
	list := append([]parameter{{"page", isNumber}, {"per_page", isNumber}, {"after", isAny}}, read...)
	past := []parameter{
		{"before", isRevision}, {"per_page", isNumber}, {"actor", isActor}, {"action", isChange}, {"since", isTime}, {"until", isTime},
	}
	write := []parameter{{"changes", isFlag}, {"dry_run", isFlag}}
	bulk := []parameter{{"all", isFlag}, {"dry_run", isFlag}}
	pause := append([]parameter{{"paused_by", resumeOnly}}, bulk...)
	resume := append([]parameter{{"paused_by", isText}}, bulk...)

	routes := []route{
		{method: "GET", path: collection, action: relayer.ActionList, handle: a.listRelayers, parameters: list, hasFilters: true, limit: a.pages},
		{method: "POST", path: collection, action: relayer.ActionCreate, handle: a.createRelayer, parameters: write},
		{method: "GET", path: collection + ":watch", action: relayer.ActionWatch, handle: a.watchRelayers, parameters: read, hasFilters: true, isStream: true},
		{method: "GET", path: collection + ":history", action: relayer.ActionList, handle: a.getHistory, parameters: past, limit: a.pages},
		{method: "POST", path: collection + ":pause", action: relayer.ActionPause, handle: a.pauseRelayers, parameters: pause, hasFilters: true, limit: a.bulk},
		{method: "POST", path: collection + ":resume", action: relayer.ActionResume, handle: a.resumeRelayers, parameters: resume, hasFilters: true, limit: a.bulk},
		{method: "GET", path: single, action: relayer.ActionGet, handle: a.getRelayer, parameters: read, ignoresMalformed: true},
		{method: "PATCH", path: single, action: relayer.ActionUpdate, handle: a.patchRelayer, parameters: write},
		{method: "DELETE", path: single, action: relayer.ActionDelete, handle: a.deleteRelayer, parameters: write},
		{method: "GET", path: single + "/history", action: relayer.ActionGet, handle: a.getHistory, parameters: past, limit: a.pages},
		{method: "GET", path: accessPath, handle: a.getAccess, ignoresMalformed: true},
		{method: "GET", path: openAPIPath, handle: serveOpenAPI, isPublic: true},
	}
	if a.engineOperations {
		routes = append(routes,
			route{method: "PUT", path: single + "/disabled_reason", action: relayer.ActionDisable, handle: a.disableRelayer, parameters: write},
			route{method: "DELETE", path: single + "/disabled_reason", action: relayer.ActionEnable, handle: a.enableRelayer, parameters: write})
	}
	return routes
}

// endpoint returns the endpoint of a route with what applies to it before. The order is that of
// the checks: rate, permission and query, limit of the route, bytes.
func (a *API) endpoint(route route) endpoint {
	handle := route.handle
	if route.isPublic {
		return handle
	}
	if !route.isStream {
		handle = a.bytesLimited(handle)
	}
	if route.limit != nil {
		handle = a.limited(route.limit, handle)
	}
	handle = a.authorized(route, handle)
	if route.method == http.MethodGet {
		handle = a.rateLimited(handle)
	}
	return handle
}

func (a *API) actions() (all []relayer.Action) {
	for _, route := range a.routes() {
		if route.action != "" && !slices.Contains(all, route.action) {
			all = append(all, route.action)
		}
	}
	if a.engineOperations {
		all = append(all, relayer.ActionReveal)
	}
	return all
}

// allowedMethods returns the methods of each path. A path with GET has HEAD too.
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

func (a *API) newMux() *http.ServeMux {
	mux, routes := http.NewServeMux(), a.routes()
	register := func(pattern string, handle endpoint) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			x := w.(*exchange)
			x.relayerID, x.route = r.PathValue("relayer_id"), r.Pattern
			if p := handle(x, r); x.status == 0 {
				x.respond(r, p)
			}
		})
	}
	for _, route := range routes {
		register(route.method+" "+route.path, a.endpoint(route))
	}
	for path, methods := range allowedMethods(routes) {
		register(path, func(*exchange, *http.Request) response {
			return failure(http.StatusMethodNotAllowed).withHeader("Allow", strings.Join(methods, ", "))
		})
	}
	register("/", func(*exchange, *http.Request) response {
		return failure(http.StatusNotFound)
	})
	return mux
}

func (a *API) rateLimited(handle endpoint) endpoint {
	return func(x *exchange, r *http.Request) response {
		if wait := a.reads.take(x.actor.ID); wait > 0 {
			seconds := int64((wait + time.Second - 1) / time.Second) // rounded up
			return failure(http.StatusTooManyRequests).withHeader("Retry-After", strconv.FormatInt(seconds, 10))
		}
		return handle(x, r)
	}
}

func (a *API) authFailure(x *exchange, r *http.Request, err error) response {
	if errors.Is(err, ErrUnauthorized) {
		return failure(http.StatusUnauthorized).withHeader("Www-Authenticate", challenge(r))
	}
	a.logFault(x, r, fmt.Errorf("authenticator: %w", err))
	return overloaded()
}

// errorResponse returns the response to a request that failed with err.
func (a *API) errorResponse(x *exchange, r *http.Request, err error) response {
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return invalidRequest(http.StatusBadRequest, invalid.Fields...)
	}
	// The caller is authenticated and authorized, so that these are errors of a hook that
	// called another registry.
	isOfHook := errors.Is(err, wire.ErrUnauthorized) || errors.Is(err, wire.ErrForbidden)
	if status, ok := wire.Status(err); ok && status < http.StatusInternalServerError && !isOfHook {
		return failureOf(status, x.relayerID)
	}
	return a.faultResponse(x, r, err)
}

// faultResponse returns the response to a fault of the server or the host, and logs it.
func (a *API) faultResponse(x *exchange, r *http.Request, err error) response {
	a.logFault(x, r, err)
	if isTemporary(r.Context(), err) {
		return overloaded()
	}
	return failure(http.StatusInternalServerError)
}

// isTemporary reports whether a retry may succeed. The error counts before ctx: a write
// may have taken effect, which its error reports, although ctx is done.
func isTemporary(ctx context.Context, err error) bool {
	status, ok := wire.Status(err)
	return status == http.StatusServiceUnavailable || !ok && ctx.Err() != nil
}

// logFault logs the cause of an error response, with all URLs masked: an error of a host's
// hook may quote an RPC URL. The level is debug if the context is done, because then the
// client is gone or a deadline of the host has passed.
func (a *API) logFault(x *exchange, r *http.Request, err error) {
	level := slog.LevelError
	if r.Context().Err() != nil {
		level = slog.LevelDebug
	}
	attributes := []slog.Attr{
		slog.String("request_id", x.actor.RequestID),
		slog.String("principal", x.actor.ID),
		slog.String("method", loggedMethod(r)),
		slog.String("route", x.route),
		slog.String("error", mask.Text(err.Error())),
	}
	if panicked, ok := errors.AsType[*panicError](err); ok {
		attributes = append(attributes, slog.String("stack", string(panicked.stack)))
	}
	a.log(r.Context(), level, "request failed", attributes...)
}

// panicError is a panic as an error. Its stack is not a part of the text, in which URLs are
// masked.
type panicError struct {
	cause any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.cause) }
