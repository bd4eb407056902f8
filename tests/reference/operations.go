package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// operation is a method of a path. Responses are a status and, unless the status has only one,
// the name of its response. Each operation has 401, 500 and 503 too, unless it is public. The
// parameter filters is replaced by the filters of the selector.
type operation struct {
	Method, Path, ID, Tag string
	Summary, Description  string
	Parameters            []string
	Body                  *body
	Responses             []string
	Public                bool // needs no token
	Optional              bool // its path is unknown unless the host enables it
}

// body is what an operation reads. Its examples are in examples.json.
type body struct {
	Schema, Description string
	Types               []string
	Examples            string
}

const filters = "filters"

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
	if o.Public {
		return []string{"503"}
	}
	return []string{"401", "500", "503"}
}

func (o operation) render(d *document) object {
	rendered := obj("operationId", o.ID, "tags", []string{o.Tag}, "summary", o.Summary, "description", o.Description)
	if o.Public {
		rendered = rendered.with("security", []string{})
	}
	if o.Parameters != nil {
		rendered = rendered.with("parameters", d.parameterRefs(o.Parameters))
	}
	if o.Body != nil {
		content := obj()
		for _, mediaType := range o.Body.Types {
			content = content.with(mediaType, obj("schema", ref(o.Body.Schema), "examples", d.examples.get("requests").(object).get(o.Body.Examples)))
		}
		rendered = rendered.with("requestBody", obj("required", true, "description", o.Body.Description, "content", content))
	}
	return rendered.with("responses", statuses(append(o.always(), o.Responses...)...))
}

var readVerb = regexp.MustCompile(`^(get|list|search)`)

// head is the operation HEAD of a get.
func (o operation) head() operation {
	noun := readVerb.ReplaceAllString(o.ID, "")
	o.Method, o.ID = "head", "head"+strings.ToUpper(noun[:1])+noun[1:]
	o.Summary += ", without the body"
	o.Description = "Returns the status and headers of GET without the body."
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
	for _, o := range d.tables.Operations {
		item, found := paths.get(o.Path).(object)
		if !found {
			shared := []string{"RequestId"}
			if strings.Contains(o.Path, "{relayer_id}") {
				shared = []string{"RelayerIdPath", "RequestId"}
			}
			others := append(o.always(), "405")
			if o.Optional {
				others = append(others, "404 PathNotFound")
			}
			item = obj("parameters", d.parameterRefs(shared), "x-other-methods", statuses(others...))
		}
		item = item.with(o.Method, o.render(d))
		if o.Method == "get" {
			item = item.with("head", o.renderHead(d))
		}
		paths = paths.with(o.Path, item)
	}
	return paths.with("x-unknown-paths", statuses("401", "404 PathNotFound", "500", "503"))
}

// answer is a response. Its examples are in examples.json, by its name.
type answer struct {
	Name, Description string
	Schema            string   // empty: without content
	Message           object   // the rule of the message of a failure
	Headers           []string // in addition to the headers of every response
}

func (a answer) render(d *document) object {
	headers := obj()
	for _, name := range append(a.Headers, "Cache-Control", "X-Content-Type-Options", "X-Request-Id") {
		headers = headers.with(name, obj("$ref", "#/components/headers/"+name))
	}
	rendered := obj("description", a.Description, "headers", headers)
	content, _ := d.examples.get("responses").(object).get(a.Name).(object)
	switch {
	case a.Schema == "" && content == nil:
		return rendered
	case a.Schema == "": // the stream
		return rendered.with("content", content)
	}
	schema := ref(a.Schema)
	if a.Message != nil {
		schema = schema.with("properties", obj("message", a.Message))
	}
	return rendered.with("content", obj("application/json", obj("schema", schema, "examples", content)))
}
