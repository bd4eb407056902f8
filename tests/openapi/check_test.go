package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
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
