package httpapi

import (
	_ "embed"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
)

// endpoint handles the requests of one route. It returns the response, unless it has sent it.
type endpoint func(*exchange) response

// route is a method and a path, and what applies to their requests.
type route struct {
	method string
	path   string
	action relayer.Action // that needs permission; empty: permitted to every caller
	endpoint

	parameters []string // names of [parameters]
	hasFilters bool     // the keys of a selector are parameters too
	body       []string // the media types of the body; none: it has none
	limit      *limit   // of the requests that are handled at once, or nil
	isStream   bool
	isPublic   bool // needs no token, and has no endpoint: it responds with the OpenAPI document
}

const (
	collection  = "/api/v1/relayers"
	single      = collection + "/{relayer_id}"
	accessPath  = "/api/v1/access"
	openAPIPath = "/api/v1/openapi.json"
)

// openAPIDocument describes the API in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPIDocument []byte

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
		{method: "GET", path: collection, action: relayer.ActionList, endpoint: a.listRelayers, parameters: list, hasFilters: true, limit: a.pages},
		{method: "POST", path: collection, action: relayer.ActionCreate, endpoint: a.createRelayer, parameters: write, body: json},
		{method: "GET", path: collection + ":watch", action: relayer.ActionWatch, endpoint: a.watchRelayers, parameters: read, hasFilters: true, isStream: true},
		{method: "GET", path: collection + ":history", action: relayer.ActionList, endpoint: a.getHistory, parameters: past, limit: a.pages},
		{method: "POST", path: collection + ":pause", action: relayer.ActionPause, endpoint: a.pauseRelayers, parameters: bulk, hasFilters: true, limit: a.bulk},
		{method: "POST", path: collection + ":resume", action: relayer.ActionResume, endpoint: a.resumeRelayers, parameters: bulk, hasFilters: true, limit: a.bulk},
		{method: "GET", path: single, action: relayer.ActionGet, endpoint: a.getRelayer, parameters: read},
		{method: "PATCH", path: single, action: relayer.ActionUpdate, endpoint: a.patchRelayer, parameters: write, body: []string{jsonType, mergePatchType}},
		{method: "DELETE", path: single, action: relayer.ActionDelete, endpoint: a.deleteRelayer, parameters: write},
		{method: "GET", path: single + "/history", action: relayer.ActionGet, endpoint: a.getHistory, parameters: past, limit: a.pages},
		{method: "GET", path: accessPath, endpoint: a.getAccess},
		{method: "GET", path: openAPIPath, isPublic: true},
	}
	if a.engineOperations {
		routes = append(routes,
			route{method: "PUT", path: single + "/disabled_reason", action: relayer.ActionDisable, endpoint: a.disableRelayer, parameters: write, body: json},
			route{method: "DELETE", path: single + "/disabled_reason", action: relayer.ActionEnable, endpoint: a.enableRelayer, parameters: write})
	}
	return routes
}

// handle makes the checks that apply to the requests of the route, in the order of the contract,
// and calls its endpoint.
func (a *API) handle(x *exchange, route route) response {
	if route.isPublic {
		return response{status: http.StatusOK, body: openAPIDocument}
	}
	if route.method == http.MethodGet {
		if wait := a.reads.take(x.actor.ID); wait > 0 {
			seconds := int64((wait + time.Second - 1) / time.Second) // rounded up
			return failure(http.StatusTooManyRequests).withHeader("Retry-After", strconv.FormatInt(seconds, 10))
		}
	}
	if p := a.authorized(x, route); p.status != 0 {
		return p
	}
	if route.limit != nil {
		if !route.limit.wait(x, x.caller) {
			return a.refuse(x, route.limit)
		}
		defer route.limit.add(x.caller, -1)
	}
	if route.isStream {
		return route.endpoint(x)
	}
	if !a.pending.tryAcquire(x.caller, 0) {
		return a.refuse(x, a.pending)
	}
	var p response
	if route.body != nil {
		p = a.withBody(x, route.body)
	}
	if p.status == 0 {
		p = route.endpoint(x)
	}
	return a.withinPendingBytes(x, p)
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
		register(route.method+" "+route.path, func(x *exchange) response { return a.handle(x, route) })
	}
	for path, methods := range allowedMethods(routes) {
		register(path, func(*exchange) response {
			return failure(http.StatusMethodNotAllowed).withHeader("Allow", strings.Join(methods, ", "))
		})
	}
	register("/", func(*exchange) response { return failure(http.StatusNotFound) })
	return mux
}
