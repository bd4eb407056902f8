package main

import "strings"

// answer is a response. Its examples are in examples.json, by its name.
type answer struct {
	name, description string
	schema            string   // none: without content
	message           object   // the rule of the message of a failure
	headers           []string // besides those of every response
}

func message(text string) object { return obj("const", text) }

const notFoundPattern = `Relayer with ID [\s\S]* not found`

var answers = []answer{
	{name: "RelayerFound", description: "The relayer.", schema: "RelayerEnvelope", headers: []string{"ETag"}},
	{name: "RelayerPage", description: "A page of relayers in creation order. A page past the end is empty.", schema: "RelayerListEnvelope"},
	{name: "RelayerCreated", description: "The created relayer.", schema: "RelayerEnvelope", headers: []string{"ETag", "Location"}},
	{name: "RelayerValid", description: "The relayer as the dry run of a create would create it. A generated ID is only an example.", schema: "RelayerEnvelope"},
	{name: "RelayerUpdated", description: "The changed relayer. The ETag is the same as before if nothing changed.", schema: "RelayerEnvelope", headers: []string{"ETag"}},
	{name: "RelayerDeleted", description: "The relayer is deleted.", schema: "DeletedEnvelope"},
	{name: "Bulk", description: "The request has ended. Each selected relayer is counted once, or is in `failed`.", schema: "BulkEnvelope"},
	{name: "History", description: "Changes, newest first.", schema: "HistoryEnvelope"},
	{name: "Access", description: "The permissions of the caller.", schema: "AccessEnvelope"},
	{name: "RelayerChanges", description: changesDescription, headers: []string{"X-Accel-Buffering"}},
	{name: "NotModified", description: "One of the entity tags in If-None-Match is current.", headers: []string{"ETag"}},
	{name: "Document", description: "This document.", schema: "OpenAPIDocument"},

	{name: "RelayerFoundHead", description: headDescription, headers: []string{"ETag"}},
	{name: "RelayerPageHead", description: headDescription},
	{name: "HistoryHead", description: headDescription},
	{name: "AccessHead", description: headDescription},
	{name: "RelayerChangesHead", description: headDescription, headers: []string{"X-Accel-Buffering"}},
	{name: "DocumentHead", description: headDescription},
	{name: "FailureHead", description: "The failure that GET returns, without its body."},
	{name: "UnauthorizedHead", description: "The bearer token is missing or invalid.", headers: []string{"WWW-Authenticate"}},
	{name: "RetryLaterHead", description: "The failure that GET returns, without its body. Retry later.", headers: []string{"Retry-After"}},

	{name: "InvalidRequest", description: "The request is malformed or invalid.", schema: "InvalidRequest"},
	{name: "InvalidPatch", description: "The patch, or the relayer that results from it, is malformed or invalid.", schema: "InvalidRequest"},
	{name: "InvalidQuery", description: "A query parameter is invalid.", schema: "InvalidRequest"},
	{name: "InvalidReason", description: "The reason is malformed or invalid, or the relayer would leave the relayers that the caller may use.", schema: "InvalidRequest"},
	{name: "Refused", description: "The host application refuses the change and returns the reason, or a query parameter is invalid.", schema: "InvalidRequest"},
	{name: "PayloadTooLarge", description: "The body is above the size limit of the host (default 1 MiB).", schema: "InvalidRequest"},
	{name: "UnsupportedMediaType", description: "The Content-Type is not accepted, or the body has a Content-Encoding.", schema: "InvalidRequest"},

	{name: "Unauthorized", description: "The bearer token is missing or invalid.", schema: "Failure", message: message("Unauthorized"), headers: []string{"WWW-Authenticate"}},
	{name: "Forbidden", description: "The caller may not do this. Only servers with an authorizer return it.", schema: "Failure", message: message("Forbidden")},
	{
		name: "RelayerNotFound", description: "No relayer has this ID, or the caller may not see it.",
		schema: "Failure", message: obj("pattern", "^"+notFoundPattern+"$"),
	},
	{name: "PathNotFound", description: "The path is unknown.", schema: "Failure", message: message("Not Found")},
	{
		name: "RelayerOrPathNotFound", schema: "Failure", message: obj("pattern", "^(Not Found|"+notFoundPattern+")$"),
		description: "No relayer has this ID, or the caller may not see it. Or the host application has not enabled the operation: the message is then that of an unknown path.",
	},
	{name: "MethodNotAllowed", description: "The path does not support the method.", schema: "Failure", message: message("Method Not Allowed"), headers: []string{"Allow"}},
	{name: "RelayerExists", description: "A relayer with this ID already exists.", schema: "Failure", message: message("Relayer with this ID already exists")},
	{name: "PreconditionFailed", description: "The current revision of the relayer is not in If-Match.", schema: "Failure", message: message("Precondition Failed")},
	{
		name: "TooManyRequests", description: "The caller is above its rate limit for gets, lists and streams.",
		schema: "Failure", message: message("Too Many Requests"), headers: []string{"Retry-After"},
	},
	{
		name: "InternalServerError", schema: "Failure", message: message("Internal Server Error"),
		description: "A fault of the server. The cause is in the log under the X-Request-Id. A change may have been made: read the relayer, whose last change has the request ID of its write.",
	},
	{
		name: "ServiceUnavailable", schema: "Failure", message: message("Service Unavailable"), headers: []string{"Retry-After"},
		description: "The server is overloaded, its store is unavailable, or too many changes of the relayer conflicted. Retry later.",
	},
}

const headDescription = "The response of GET, without its body."

const changesDescription = "Server-Sent Events. `created`, `updated` and `deleted` have as data the relayer after the change, or its last state if it was deleted. " +
	"A relayer that the filters or the permission of the stream cease to select is deleted with only its `id`. `id` is the position of the change, or of a heartbeat, " +
	"in this stream; it is missing if the server cannot resume. `resync` has no `id`: it reports a gap, changes that the stream does not contain. The data of the " +
	"first event has `metadata` if a query parameter is unknown. `x-event-data` has the schemas of the data."

func (a answer) render(d *document) object {
	headers := obj()
	for _, name := range append(a.headers, "Cache-Control", "X-Content-Type-Options", "X-Request-Id") {
		headers = headers.with(strings.TrimPrefix(name, "Document"), obj("$ref", "#/components/headers/"+name))
	}
	rendered := obj("description", a.description, "headers", headers)
	content, _ := d.examples.get("responses").(object).get(a.name).(object)
	switch {
	case a.schema == "" && content == nil:
		return rendered
	case a.schema == "": // the stream
		return rendered.with("content", content)
	}
	schema := ref(a.schema)
	if a.message != nil {
		schema = schema.with("properties", obj("message", a.message))
	}
	return rendered.with("content", obj("application/json", obj("schema", schema, "examples", content)))
}
