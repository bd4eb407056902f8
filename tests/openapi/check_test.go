package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-relayer/relayer"
)

// transportHeaders are response headers that the document does not list: those of
// HTTP itself, and Content-Type, which is the key of the content.
var transportHeaders = map[string]bool{"Content-Length": true, "Content-Type": true, "Connection": true}

// check returns how the exchange differs from the document.
func (d *document) check(x exchange) error {
	found := d.find(x)
	pointer := found.responses + "/" + strconv.Itoa(x.Status)
	if d.at(pointer) == nil {
		return fmt.Errorf("status %d is not described", x.Status)
	}
	response := d.resolve(pointer)
	problems := []error{d.checkHeaders(response+"/headers", x.Header), d.checkBody(response, x), checkMasks(x)}
	if x.Status < http.StatusBadRequest && found.described != "" {
		problems = append(problems, d.checkRequest(found, x))
	}
	return errors.Join(problems...)
}

// rpcURL is the URL of an endpoint in a response, with line breaks in the document of a stream
// removed. maskedURL is one without secrets.
var (
	rpcURL    = regexp.MustCompile(`\{"url":"([^"]*)"`)
	maskedURL = regexp.MustCompile(`^(https?|wss?)://[^/?#@]+(/(\*\*\*)?)?$`)
)

// checkMasks checks that RPC URLs are masked unless the query asks for the full ones. The
// schema of a response permits both.
func checkMasks(x exchange) error {
	query, _ := url.ParseQuery(x.Query)
	if x.Path == documentPath || query.Get("rpc_urls") == "full" && !strings.HasSuffix(x.Path, "/history") {
		return nil
	}
	for _, found := range rpcURL.FindAllSubmatch(x.Body, -1) {
		if !maskedURL.Match(found[1]) {
			return fmt.Errorf("an RPC URL is not masked: %s", found[1])
		}
	}
	return nil
}

func (d *document) checkHeaders(pointer string, header http.Header) error {
	var problems []error
	described := make(map[string]bool)
	for name := range d.at(pointer) {
		described[http.CanonicalHeaderKey(name)] = true
		at := d.resolve(pointer + "/" + name)
		problems = append(problems, d.checkText(at, "header "+name, header.Values(name)))
	}
	for name := range header {
		if !described[name] && !transportHeaders[name] {
			problems = append(problems, fmt.Errorf("header %s is not described", name))
		}
	}
	return errors.Join(problems...)
}

// checkText checks the values of a header or of a parameter against its description.
func (d *document) checkText(pointer, name string, values []string) error {
	described := d.at(pointer)
	if len(values) == 0 {
		if described["required"] == true {
			return fmt.Errorf("%s is missing", name)
		}
		return nil
	}
	isList := described["schema"].(map[string]any)["type"] == "array"
	if len(values) > 1 && !isList {
		return fmt.Errorf("%s has %d values", name, len(values))
	}
	schema := pointer + "/schema"
	if isList {
		schema += "/items"
	}
	for _, text := range values {
		if err := d.checkValue(schema, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkValue checks one value of a header or of a parameter.
func (d *document) checkValue(schema, text string) error {
	var value any = text
	switch d.at(d.resolve(schema))["type"] {
	case "integer":
		number, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		value = number
	case "boolean":
		if text == "true" || text == "false" {
			value = text == "true"
		}
	}
	return d.schema(schema).Validate(value)
}

func (d *document) checkBody(response string, x exchange) error {
	if x.Method == http.MethodHead || x.Status == http.StatusNotModified {
		if len(x.Body) > 0 {
			return fmt.Errorf("HTTP forbids a body here: %s", x.Body)
		}
		return nil
	}
	return d.checkContent(response+"/content", x.Header, x.Body)
}

// checkContent checks a body against the schema of its content type.
func (d *document) checkContent(pointer string, header http.Header, body []byte) error {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	at := pointer + "/" + escape.Replace(mediaType)
	if d.at(at) == nil {
		return fmt.Errorf("content of type %s is not described", mediaType)
	}
	if mediaType == eventStream {
		return d.checkEvents(at, string(body))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return d.schema(at + "/schema").Validate(value)
}

const eventStream = "text/event-stream"

// event is an event of a stream; the fields are in the order of the handler.
var event = regexp.MustCompile(`^(?:id: [!-~]+\n)?event: ([a-z]+)\ndata: (.*)$`)

// checkEvents checks the data of each event of a stream.
func (d *document) checkEvents(pointer, stream string) error {
	if err := d.schema(pointer + "/schema").Validate(stream); err != nil {
		return err
	}
	if stream == "" {
		return nil // it ended before its first event
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		found := event.FindStringSubmatch(block)
		if found == nil {
			return fmt.Errorf("not an event: %q", block)
		}
		at := pointer + "/x-event-data/" + found[1]
		if d.at(at) == nil {
			return fmt.Errorf("event %s is not described", found[1])
		}
		data, err := jsonschema.UnmarshalJSON(strings.NewReader(found[2]))
		if err != nil {
			return err
		}
		if err := d.schema(at).Validate(data); err != nil {
			return err
		}
	}
	return nil
}

// checkRequest checks a request that the handler accepted: the document must allow
// it.
func (d *document) checkRequest(found operation, x exchange) error {
	query, err := url.ParseQuery(x.Query)
	if err != nil {
		return err
	}
	var problems []error
	for _, list := range []string{"#/paths/" + escape.Replace(found.path), found.described} {
		parameters, _ := d.at(list)["parameters"].([]any)
		for _, parameter := range parameters {
			at := parameter.(map[string]any)["$ref"].(string)
			name := d.at(at)["name"].(string)
			problems = append(problems, d.checkText(at, "parameter "+name, parameterValues(d.at(at)["in"].(string), name, found, query, x)))
		}
	}
	if d.at(found.described+"/requestBody") != nil {
		problems = append(problems, d.checkContent(found.described+"/requestBody/content", x.RequestHeader, x.RequestBody))
	}
	return errors.Join(problems...)
}

func parameterValues(in, name string, found operation, query url.Values, x exchange) []string {
	switch in {
	case "path":
		return []string{found.parameters[name]}
	case "query":
		return query[name]
	default:
		// Several lines of one header are one list.
		return x.RequestHeader.Values(name)[:min(1, len(x.RequestHeader.Values(name)))]
	}
}

const onePath = "/api/v1/relayers/r-1"

// realExchanges returns real exchanges with the handler by name.
func realExchanges(t *testing.T) map[string]exchange {
	t.Helper()
	handler := newHandler(t)
	send := func(method, path, body string, header http.Header) exchange {
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request = request.WithContext(relayer.WithActor(request.Context(), relayer.Actor{ID: "tester"}))
		request.Header = header
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return exchange{method, request.URL.EscapedPath(), request.URL.RawQuery, header, []byte(body), recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	}
	const create = `{"id":"r-1","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s",` +
		`"custom_rpc_urls":[{"url":"https://rpc.example/key"}],"policies":{"gas_price_cap":1}}`
	isJSON := http.Header{"Content-Type": {"application/json"}}
	return map[string]exchange{
		"created":     send("POST", "/api/v1/relayers", create, isJSON),
		"read":        send("GET", onePath, "", http.Header{}),
		"head":        send("HEAD", onePath, "", http.Header{}),
		"unmodified":  send("GET", onePath, "", http.Header{"If-None-Match": {"*"}}),
		"page":        send("GET", "/api/v1/relayers?page=1", "", http.Header{}),
		"cursor":      send("GET", "/api/v1/relayers?after=&changes=true", "", http.Header{}),
		"history":     send("GET", onePath+"/history", "", http.Header{}),
		"patched":     send("PATCH", onePath, `{"paused":true}`, isJSON),
		"invalid":     send("POST", "/api/v1/relayers", `{}`, isJSON),
		"not found":   send("GET", "/api/v1/relayers/nobody", "", http.Header{}),
		"not allowed": send("PUT", onePath, "", http.Header{}),
		"no path":     send("GET", "/nowhere", "", http.Header{}),
		"document":    send("GET", documentPath, "", http.Header{}),
	}
}

// replace changes the body of the response.
func replace(old, new string) func(*exchange) {
	return func(x *exchange) { x.Body = bytes.Replace(x.Body, []byte(old), []byte(new), 1) }
}

// replaceSent changes the body of the request.
func replaceSent(old, new string) func(*exchange) {
	return func(x *exchange) { x.RequestBody = bytes.Replace(x.RequestBody, []byte(old), []byte(new), 1) }
}

// set changes a header of the response, or removes it if there is no value.
func set(name string, values ...string) func(*exchange) {
	return func(x *exchange) { x.Header[http.CanonicalHeaderKey(name)] = values }
}

// invalidResponses are exchanges that the handler never produces.
var invalidResponses = []struct {
	name, base string
	change     func(*exchange)
}{
	{"another status", "read", func(x *exchange) { x.Status = 418 }},
	{"a status of another operation", "read", func(x *exchange) { x.Status = 201 }},
	{"a missing header", "read", set("ETag")},
	{"a duplicate header", "read", set("ETag", `"1"`, `"2"`)},
	{"a wrong header", "read", set("Cache-Control", "public")},
	{"an undescribed header", "read", set("X-Powered-By", "Go")},
	{"no request id", "not found", set("X-Request-Id")},
	{"another content type", "read", set("Content-Type", "text/html")},
	{"no content type", "read", set("Content-Type")},
	{"a body that is not JSON", "read", replace("{", "")},
	{"a missing member", "read", replace(`"paused":false,`, "")},
	{"an additional member", "read", replace(`"paused":false,`, `"paused":false,"private":1,`)},
	{"an additional member of a policy", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":1,"max_fee":1`)},
	{"an additional member of the envelope", "read", replace(`"success":true`, `"success":true,"message":"ok"`)},
	{"a member of another type", "read", replace(`"paused":false`, `"paused":"false"`)},
	{"null in place of an omitted member", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":null`)},
	{"wei as a string", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":"1"`)},
	{"wei of 2^256", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":115792089237316195423570985008687907853269984665640564039457584007913129639936`)},
	{"another network type", "read", replace(`"evm"`, `"solana"`)},
	{"an unknown network type", "read", replace(`"evm"`, `"fictional"`)},
	{"an unmasked URL", "read", replace(`rpc.example/***`, `rpc.example/key`)},
	{"an unmasked URL of a page", "cursor", replace(`rpc.example/***`, `u@rpc.example`)},
	{"an unmasked URL of a history", "history", replace(`rpc.example/***`, `rpc.example/key`)},
	{"a change without a revision", "cursor", replace(`"revision":1,`, ``)},
	{"a position that is not text", "cursor", replace(`"position":"`, `"position":1,"p":"`)},
	{"an entry of a history without a relayer", "history", replace(`"relayer":{`, `"other":{`)},
	{"a weight out of bounds", "read", replace(`"weight":100`, `"weight":101`)},
	{"an invalid ID", "read", replace(`"r-1"`, `"r.1"`)},
	{"disabled without a reason", "read", replace(`"system_disabled":false`, `"system_disabled":true`)},
	{"a reason without system_disabled", "read", replace(`"system_disabled":false`, `"system_disabled":false,"disabled_reason":{"type":"x","details":""}`)},
	{"success false with status 200", "read", replace(`"success":true`, `"success":false`)},
	{"HEAD with a body", "head", func(x *exchange) { x.Body = []byte("{}") }},
	{"HEAD without its ETag", "head", set("ETag")},
	{"HEAD with another status", "head", func(x *exchange) { x.Status = 201 }},
	{"304 with a body", "unmodified", func(x *exchange) { x.Body = []byte("{}") }},
	{"304 without its ETag", "unmodified", set("ETag")},
	{"a null page", "page", func(x *exchange) { x.Body = []byte(`{"success":true,"data":null}`) }},
	{"a page without its total", "page", replace(`,"total_items":1`, "")},
	{"an invalid query", "page", func(x *exchange) { x.Query = "page=4294967296" }},
	{"a create without Location", "created", set("Location")},
	{"a create with a wrong Location", "created", set("Location", "/api/v1/relayers/a.b")},
	{"a request with an unknown member", "created", replaceSent(`"id"`, `"color":1,"id"`)},
	{"a request of another network's policy", "created", replaceSent(`gas_price_cap`, `max_signatures`)},
	{"a request without a name", "created", replaceSent(`"name":"n",`, "")},
	{"a request of another type", "created", func(x *exchange) { x.RequestHeader = http.Header{"Content-Type": {"text/plain"}} }},
	{"a patch of a read-only member", "patched", replaceSent(`"paused"`, `"system_disabled"`)},
	{"a failure without errors", "invalid", func(x *exchange) { x.Body = []byte(`{"success":false,"data":null,"message":"Bad Request"}`) }},
	{"a failure with errors", "not found", replace(`not found"`, `not found","errors":[{"message":"m"}]`)},
	{"a failure with data", "not found", replace(`"data":null`, `"data":{}`)},
	{"another message", "not found", replace(`Relayer with ID`, `No relayer`)},
	{"405 without Allow", "not allowed", set("Allow")},
	{"an unknown method with status 200", "not allowed", func(x *exchange) { x.Status = 200 }},
	{"an unknown path with status 200", "no path", func(x *exchange) { x.Status = 200 }},
	{"another document", "document", func(x *exchange) { x.Body = []byte(`{"swagger":"2.0"}`) }},
}

// TestCheck_RealExchanges checks that the check accepts what the handler does.
func TestCheck_RealExchanges(t *testing.T) {
	exact := readStrictly(t, served(t))
	for name, x := range realExchanges(t) {
		if err := exact.check(x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestControl_InvalidResponses proves that the check can fail.
func TestControl_InvalidResponses(t *testing.T) {
	exact, exchanges := readStrictly(t, served(t)), realExchanges(t)
	for _, c := range invalidResponses {
		real, ok := exchanges[c.base]
		if !ok {
			t.Fatalf("%s: no exchange %q", c.name, c.base)
		}
		changed := real
		changed.Header, changed.RequestHeader = real.Header.Clone(), real.RequestHeader.Clone()
		changed.Body = slices.Clone(real.Body)
		c.change(&changed)
		if changed.identity() == real.identity() && changed.Header.Get("X-Request-Id") == real.Header.Get("X-Request-Id") {
			t.Errorf("%s: the exchange is unchanged", c.name)
		}
		if err := exact.check(changed); err == nil {
			t.Errorf("%s is not detected", c.name)
		}
	}
}
