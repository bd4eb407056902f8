package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
)

// endpoint handles the requests of one route. It returns the response, unless it has
// sent it.
type endpoint func(*exchange) response

// route is a method and a path, and what applies to their requests.
type route struct {
	method string
	path   string
	action relayer.Action // that needs permission; empty: permitted to every caller
	handle endpoint

	parameters []string // names of [parameters]
	hasFilters bool     // the keys of a selector are parameters too
	body       []string // the media types of the body; none: it has none
	limit      *limit   // of the requests that are handled at once, or nil
	isStream   bool
	isPublic   bool // needs no token
}

const (
	collection = "/api/v1/relayers"
	single     = collection + "/{relayer_id}"
	accessPath = "/api/v1/access"
)

// routes returns all routes. The mux, the Allow header and the test of the OpenAPI
// document use this one table.
func (a *API) routes() []route {
	read := []string{"changes"}
	if a.engineOperations {
		read = append(read, "rpc_urls")
	}
	list := append([]string{"page", "per_page", "after"}, read...)
	past := []string{"before", "per_page", "actor", "action", "since", "until"}
	write := []string{"changes", "dry_run"}
	bulk := []string{"all", "dry_run", "paused_by"}
	json := []string{jsonType}

	routes := []route{
		{method: "GET", path: collection, action: relayer.ActionList, handle: a.listRelayers, parameters: list, hasFilters: true, limit: a.pages},
		{method: "POST", path: collection, action: relayer.ActionCreate, handle: a.createRelayer, parameters: write, body: json},
		{method: "GET", path: collection + ":watch", action: relayer.ActionWatch, handle: a.watchRelayers, parameters: read, hasFilters: true, isStream: true},
		{method: "GET", path: collection + ":history", action: relayer.ActionList, handle: a.getHistory, parameters: past, limit: a.pages},
		{method: "POST", path: collection + ":pause", action: relayer.ActionPause, handle: a.pauseRelayers, parameters: bulk, hasFilters: true, limit: a.bulk},
		{method: "POST", path: collection + ":resume", action: relayer.ActionResume, handle: a.resumeRelayers, parameters: bulk, hasFilters: true, limit: a.bulk},
		{method: "GET", path: single, action: relayer.ActionGet, handle: a.getRelayer, parameters: read},
		{method: "PATCH", path: single, action: relayer.ActionUpdate, handle: a.patchRelayer, parameters: write, body: []string{jsonType, mergePatchType}},
		{method: "DELETE", path: single, action: relayer.ActionDelete, handle: a.deleteRelayer, parameters: write},
		{method: "GET", path: single + "/history", action: relayer.ActionGet, handle: a.getHistory, parameters: past, limit: a.pages},
		{method: "GET", path: accessPath, handle: a.getAccess},
		{method: "GET", path: openAPIPath, handle: serveOpenAPI, isPublic: true},
	}
	if a.engineOperations {
		routes = append(routes,
			route{method: "PUT", path: single + "/disabled_reason", action: relayer.ActionDisable, handle: a.disableRelayer, parameters: write, body: json},
			route{method: "DELETE", path: single + "/disabled_reason", action: relayer.ActionEnable, handle: a.enableRelayer, parameters: write})
	}
	return routes
}

// endpoint returns the endpoint of a route with what applies to it before. The order is that of
// the checks: rate, permission, query and header, limit of the route, bytes, body.
func (a *API) endpoint(route route) endpoint {
	handle := route.handle
	if route.isPublic {
		return handle
	}
	if route.body != nil {
		handle = a.withBody(route.body, handle)
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

func (a *API) rateLimited(handle endpoint) endpoint {
	return func(x *exchange) response {
		if wait := a.reads.take(x.actor.ID); wait > 0 {
			seconds := int64((wait + time.Second - 1) / time.Second) // rounded up
			return failure(http.StatusTooManyRequests).withHeader("Retry-After", strconv.FormatInt(seconds, 10))
		}
		return handle(x)
	}
}

// actions returns the actions that need permission.
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
			if p := handle(x); x.status == 0 {
				x.respond(p)
			}
		})
	}
	for _, route := range routes {
		register(route.method+" "+route.path, a.endpoint(route))
	}
	for path, methods := range allowedMethods(routes) {
		register(path, func(*exchange) response {
			return failure(http.StatusMethodNotAllowed).withHeader("Allow", strings.Join(methods, ", "))
		})
	}
	register("/", func(*exchange) response { return failure(http.StatusNotFound) })
	return mux
}
