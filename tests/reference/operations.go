package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// operation is a method of a path. Responses are a status and, unless the status has only one,
// the name of its response. Each operation has 401, 500 and 503 too, unless it is public.
type operation struct {
	method, path, id, tag string
	summary, description  string
	parameters            []string
	body                  *body
	responses             []string
	isPublic              bool // needs no token
	isOptional            bool // its path is unknown unless the host enables it
}

// body is what an operation reads. Its examples are in examples.json.
type body struct {
	schema, description string
	types               []string
	examples            string
}

const (
	collection = "/api/v1/relayers"
	single     = collection + "/{relayer_id}"

	filters = "filters" // stands for the parameters of the selector
)

var (
	pages   = []string{"Page", "PerPage", "After", "Changes", "RpcUrls", filters}
	changes = []string{"LastEventId", "Changes", "RpcUrls", filters}
	past    = []string{"Before", "HistoryPerPage", "ByActor", "ByAction", "Since", "Until"}
	write   = []string{"ChangeReason", "DryRun", "Changes"}
	ifMatch = append([]string{"IfMatch"}, write...)
)

var operations = []operation{
	{
		method: "get", path: collection, id: "listRelayers", tag: "relayers", summary: "List relayers", parameters: pages,
		description: "Returns a page of relayers in creation order, oldest first. Relayers that are added later do not shift earlier pages. " +
			"With filters, the page and the total have only the relayers that match. Pages by `page` shift if relayers are deleted; " +
			"a walk with `after` returns each relayer that exists during the whole walk exactly once.",
		responses: []string{"200 RelayerPage", "400 InvalidQuery", "403", "429"},
	},
	{
		method: "post", path: collection, id: "createRelayer", tag: "relayers", summary: "Create a relayer", parameters: write,
		description: "If several requests create the same ID concurrently, exactly one succeeds. Creates have no rate limit.",
		body:        &body{"CreateRelayerRequest", "The relayer to create.", []string{"application/json"}, "create"},
		responses:   []string{"200 RelayerValid", "201 RelayerCreated", "400 InvalidRequest", "403", "409", "413", "415 UnsupportedMediaType"},
	},
	{
		method: "get", path: collection + ":watch", id: "watchRelayers", tag: "relayers", summary: "Follow the changes of relayers", parameters: changes,
		description: watchDescription,
		responses:   []string{"200 RelayerChanges", "400 InvalidQuery", "403", "429"},
	},
	{
		method: "post", path: collection + ":pause", id: "pauseRelayers", tag: "relayers", summary: "Pause the relayers that the filters select",
		parameters:  []string{"ChangeReason", "All", "DryRun", filters},
		description: "Pauses every relayer that exists and is selected during the whole request, except those in `failed`. " + bulkDescription,
		responses:   []string{"200 Bulk", "400 InvalidQuery", "403"},
	},
	{
		method: "post", path: collection + ":resume", id: "resumeRelayers", tag: "relayers", summary: "Resume the relayers that the filters select",
		parameters: []string{"ChangeReason", "All", "PausedByRequest", "DryRun", filters},
		description: "Resumes every relayer that exists and is selected during the whole request, except those in `failed`. " +
			"With `paused_by` only those that a request paused. " + bulkDescription,
		responses: []string{"200 Bulk", "400 InvalidQuery", "403"},
	},
	{
		method: "get", path: single, id: "getRelayer", tag: "relayers", summary: "Get a relayer", parameters: []string{"IfNoneMatch", "Changes", "RpcUrls"},
		description: "Returns one relayer. An ID that is not valid is unknown (404).",
		responses:   []string{"200 RelayerFound", "304 NotModified", "400 InvalidQuery", "403", "404 RelayerNotFound", "429"},
	},
	{
		method: "patch", path: single, id: "updateRelayer", tag: "relayers", summary: "Change a relayer", parameters: ifMatch,
		description: "Without If-Match, a patch that conflicts with another change is applied again to the newer revision. Patches have no rate limit.",
		body:        &body{"UpdateRelayerRequest", "The changes. Both content types have the same meaning.", []string{"application/merge-patch+json", "application/json"}, "patch"},
		responses:   []string{"200 RelayerUpdated", "400 InvalidPatch", "403", "404 RelayerNotFound", "412", "413", "415 UnsupportedMediaType"},
	},
	{
		method: "delete", path: single, id: "deleteRelayer", tag: "relayers", summary: "Delete a relayer", parameters: ifMatch,
		description: "Deletes have no rate limit.",
		responses:   []string{"200 RelayerDeleted", "400 Refused", "403", "404 RelayerNotFound", "412"},
	},
	{
		method: "get", path: collection + ":history", id: "searchHistory", tag: "relayers", summary: "Get the history of all relayers", parameters: past,
		description: "Returns the changes of all relayers, newest first, as far as the store retains them, those of deleted relayers too. " + historyDescription +
			" A request with filters, or of such a caller, examines a limited number of changes: its page can have fewer than per_page, or none, " +
			"although next says that more follow. Needs the permission to list relayers.",
		responses: []string{"200 History", "400 InvalidQuery", "403", "404 PathNotFound", "429"},
	},
	{
		method: "get", path: single + "/history", id: "getRelayerHistory", tag: "relayers", summary: "Get the history of a relayer", parameters: past,
		description: "Returns the changes of the relayer, newest first, as far as the store retains them. A deleted relayer keeps its history. " + historyDescription +
			" Needs the permission to get the relayer.",
		responses: []string{"200 History", "400 InvalidQuery", "403", "404 RelayerOrPathNotFound", "429"},
	},
	{
		method: "put", path: single + "/disabled_reason", id: "disableRelayer", tag: "engine", summary: "Disable a relayer", parameters: ifMatch, isOptional: true,
		description: "Sets `system_disabled` and the reason. A repetition replaces the reason. Has no rate limit.",
		body:        &body{"DisableRelayerRequest", "The reason. Every URL in it is masked before it is stored.", []string{"application/json"}, "disable"},
		responses:   []string{"200 RelayerFound", "400 InvalidReason", "403", "404 RelayerOrPathNotFound", "412", "413", "415 UnsupportedMediaType"},
	},
	{
		method: "delete", path: single + "/disabled_reason", id: "enableRelayer", tag: "engine", summary: "Enable a relayer", parameters: ifMatch, isOptional: true,
		description: "Resets `system_disabled` and removes the reason. A repetition changes nothing. Has no rate limit.",
		responses:   []string{"200 RelayerFound", "400 Refused", "403", "404 RelayerOrPathNotFound", "412"},
	},
	{
		method: "get", path: "/api/v1/access", id: "getAccess", tag: "access", summary: "Get the permissions of the caller",
		description: "Needs no permission. Permissions for single relayers are not part of it.",
		responses:   []string{"200 Access", "400 InvalidQuery", "429"},
	},
	{
		method: "get", path: "/api/v1/openapi.json", id: "getOpenAPI", tag: "description", summary: "Get this document",
		description: "Needs no token and has no rate limit.", isPublic: true,
		responses: []string{"200 Document"},
	},
}

const bulkDescription = "At least one filter, or `all=true`, is required. Each relayer is a change of its own, with the same request ID and reason. " +
	"A client that goes away does not stop it. After an error some relayers may be changed: repeat the request, with the same X-Request-Id " +
	"for the same counts. Has no rate limit; 8 such requests are carried out at once."

const historyDescription = "RPC URLs are masked. A caller whose permission is for some relayers gets the changes before or after which the relayer is one of them. " +
	"A store without a history makes the path unknown (404)."

const watchDescription = "Streams changes as Server-Sent Events. With filters, a relayer that begins to match is created for the stream, and one that ceases to match " +
	"is deleted. The stream ends if the client disconnects or does not read for 10 seconds, if its permission ends or changes, or if the server stops. " +
	"To follow relayers, list them with `after`, and begin the stream with the `position` of the first page as `Last-Event-ID`. List them again after each " +
	"`resync` event, and apply the other events. Skip a create or update whose entity tag is not above the one already received. If the stream ends, connect " +
	"again with `Last-Event-ID`. A `heartbeat` event comes at least every 5 seconds. Its `complete_ms`, and that of each change that was made after the request " +
	"arrived, is the number of milliseconds from the arrival of the request to the moment up to which the stream is complete: every change that was acknowledged " +
	"before that moment has been sent. " +
	"A heartbeat has an `id` if the position has advanced over changes that the stream does not select. A client that receives nothing for 15 seconds should " +
	"connect again. The stream ends if the store is unreachable for longer than 15 seconds. Responses with 503 include those above the limit of watchers."

// ofStatus are the responses of the statuses that have only one.
var ofStatus = map[string]string{
	"401": "Unauthorized", "403": "Forbidden", "405": "MethodNotAllowed", "409": "RelayerExists", "412": "PreconditionFailed", "413": "PayloadTooLarge",
	"429": "TooManyRequests", "500": "InternalServerError", "503": "ServiceUnavailable",
}

func responseRef(name string) object { return obj("$ref", "#/components/responses/"+name) }

func statuses(names ...string) object {
	byStatus := make(map[string]string)
	for _, name := range names {
		status, response, _ := strings.Cut(name, " ")
		if response == "" {
			response = ofStatus[status]
		}
		byStatus[status] = response
	}
	var responses object
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		responses = responses.with(status, responseRef(byStatus[status]))
	}
	return responses
}

func (o operation) always() []string {
	if o.isPublic {
		return []string{"503"}
	}
	return []string{"401", "500", "503"}
}

func (o operation) render(d *document) object {
	rendered := obj("operationId", o.id, "tags", []string{o.tag}, "summary", o.summary, "description", o.description)
	if o.isPublic {
		rendered = rendered.with("security", []string{})
	}
	if o.parameters != nil {
		rendered = rendered.with("parameters", d.parameterRefs(o.parameters))
	}
	if o.body != nil {
		content := obj()
		for _, mediaType := range o.body.types {
			content = content.with(mediaType, obj("schema", ref(o.body.schema), "examples", d.examples.get("requests").(object).get(o.body.examples)))
		}
		rendered = rendered.with("requestBody", obj("required", true, "description", o.body.description, "content", content))
	}
	return rendered.with("responses", statuses(append(o.always(), o.responses...)...))
}

var readVerb = regexp.MustCompile(`^(get|list|search)`)

// head is the operation HEAD of a get.
func (o operation) head() operation {
	noun := readVerb.ReplaceAllString(o.id, "")
	o.method, o.id = "head", "head"+strings.ToUpper(noun[:1])+noun[1:]
	o.summary += ", without the body"
	o.description = "Returns the status and headers of GET without the body."
	return o
}

// renderHead returns the operation with responses that have no content.
func (o operation) renderHead(d *document) object {
	rendered := o.head().render(d)
	var responses object
	for _, m := range rendered.get("responses").(object) {
		name := strings.TrimPrefix(m.value.(object).get("$ref").(string), "#/components/responses/")
		switch {
		case strings.HasSuffix(name, "NotModified"):
		case m.name < "400":
			name += "Head"
		case m.name == "401":
			name = "UnauthorizedHead"
		case m.name == "429" || m.name == "503":
			name = "RetryLaterHead"
		default:
			name = "FailureHead"
		}
		responses = responses.with(m.name, responseRef(name))
	}
	return rendered.with("responses", responses)
}

// paths returns the operations by path, with the responses to other methods.
func (d *document) paths() object {
	var paths object
	for _, o := range operations {
		item, found := paths.get(o.path).(object)
		if !found {
			shared := []string{"RequestId"}
			if strings.Contains(o.path, "{relayer_id}") {
				shared = []string{"RelayerIdPath", "RequestId"}
			}
			others := append(o.always(), "405")
			if o.isOptional {
				others = append(others, "404 PathNotFound")
			}
			item = obj("parameters", d.parameterRefs(shared), "x-other-methods", statuses(others...))
		}
		item = item.with(o.method, o.render(d))
		if o.method == "get" {
			item = item.with("head", o.renderHead(d))
		}
		paths = paths.with(o.path, item)
	}
	return paths.with("x-unknown-paths", statuses("401", "404 PathNotFound", "500", "503"))
}
