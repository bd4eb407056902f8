// Package openapi compares the OpenAPI document with the handler. It runs the test
// suite of package httpapi and records every exchange, failures included. The
// document must describe each exchange, and the suite must provoke every response
// that the document describes.
//
// The cache of the go command does not cover that suite. Use -count=1 if only the suite
// has changed.
package openapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// documentPath is where the handler serves the document.
const documentPath = "/api/v1/openapi.json"

func newHandler(t *testing.T) http.Handler {
	t.Helper()
	manager := must(relayer.New(memory.New()))(t)
	return must(httpapi.New(manager, httpapi.TrustHost()))(t)
}

// served returns the document as the handler serves it to a client without a token.
func served(t *testing.T) []byte {
	t.Helper()
	handler := newHandler(t)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, documentPath, nil))
	if recorder.Code != http.StatusOK {
		t.Fatalf("GET %s returned %d: %s", documentPath, recorder.Code, recorder.Body)
	}
	return recorder.Body.Bytes()
}

// TestDocument_Valid validates the document and its examples with kin-openapi.
func TestDocument_Valid(t *testing.T) {
	document := must(openapi3.NewLoader().LoadFromData(served(t)))(t)
	options := []openapi3.ValidationOption{
		openapi3.EnableSchemaPatternValidation(), openapi3.EnableExamplesValidation(), openapi3.EnableMultiError(),
	}
	if !document.IsOpenAPI31OrLater() {
		t.Errorf("the version is %s", document.OpenAPI)
	}
	if err := document.Validate(t.Context(), options...); err != nil {
		t.Error(err)
	}
	document.Info.Title = "" // the control
	if document.Validate(t.Context(), options...) == nil {
		t.Error("a document without a title is valid")
	}
}

// TestExamples_MatchSchemas checks that every schema of a content has examples, with exact numbers.
// kin-openapi reads numbers as 64-bit floats, which rounds the bounds of wei.
func TestExamples_MatchSchemas(t *testing.T) {
	d := read(t, served(t))
	count := 0
	d.walk("#", d.tree, func(pointer string, node map[string]any) {
		examples := d.examplesOf(pointer, node)
		if node["schema"] != nil && len(examples) == 0 {
			t.Errorf("%s has a schema and no example", pointer)
		}
		for name, example := range examples {
			count++
			if err := d.schema(pointer + "/schema").Validate(example); err != nil {
				t.Errorf("%s, example %s: %v", pointer, name, err)
			}
		}
	})
	if count < 50 {
		t.Errorf("the document has %d examples, want 50 or more", count)
	}
}

// TestServers_RelativeURL checks that the document is correct under any prefix at
// which a host mounts the API.
func TestServers_RelativeURL(t *testing.T) {
	servers := must(openapi3.NewLoader().LoadFromData(served(t)))(t).Servers
	if len(servers) != 1 {
		t.Fatalf("%d servers", len(servers))
	}
	for _, mount := range []string{"https://host.example", "https://host.example/registry", "https://host.example/a/b%20c"} {
		from := must(url.Parse(mount + documentPath))(t)
		server := must(from.Parse(servers[0].URL))(t)
		if got := strings.TrimSuffix(server.String(), "/"); got != mount {
			t.Errorf("under %s the server is %s", mount, got)
		}
	}
}

// TestComponents_AllUsed checks that every component is referenced.
func TestComponents_AllUsed(t *testing.T) {
	text := string(served(t))
	document := read(t, []byte(text))
	for section, components := range document.tree["components"].(map[string]any) {
		if section == "securitySchemes" {
			continue
		}
		for name := range components.(map[string]any) {
			if !strings.Contains(text, `"#/components/`+section+`/`+name+`"`) {
				t.Errorf("%s %s is not referenced", section, name)
			}
		}
	}
}

// TestHead_NoContent: generated clients parse the content that a response describes, and
// fail if it is missing.
func TestHead_NoContent(t *testing.T) {
	d := read(t, served(t))
	for path := range d.at("#/paths") {
		responses := "#/paths/" + escape.Replace(path) + "/head/responses"
		for status := range d.at(responses) {
			if response := d.resolve(responses + "/" + status); d.at(response+"/content") != nil {
				t.Errorf("HEAD %s: %s has content", path, response)
			}
		}
	}
}

// TestSchemas_ClosedOnlyForRequests checks that the schema of a request allows no
// unknown members. The schema of a response allows them, for later versions.
func TestSchemas_ClosedOnlyForRequests(t *testing.T) {
	d := read(t, served(t))
	networks := relayer.NetworkTypes()
	for _, name := range []string{"CreateRelayerRequest", "RelayerResponse"} {
		union := d.at("#/components/schemas/" + name)
		mapping := union["discriminator"].(map[string]any)["mapping"].(map[string]any)
		if len(mapping) != len(networks) || len(union["oneOf"].([]any)) != len(networks) {
			t.Errorf("%s is not one of %v", name, networks)
		}
		for networkType, target := range mapping {
			member := d.at(target.(string))
			if declared := member["properties"].(map[string]any)["network_type"].(map[string]any)["const"]; declared != networkType {
				t.Errorf("%s maps %s to a schema for %v", name, networkType, declared)
			}
			if closed := member["additionalProperties"] == false; closed != (name == "CreateRelayerRequest") {
				t.Errorf("%s of %s: closed is %t", name, networkType, closed)
			}
		}
	}
}

// TestSchemas_Bounds checks the values at each bound and just beyond it.
func TestSchemas_Bounds(t *testing.T) {
	d := read(t, served(t))
	const max256 = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	const over256 = "115792089237316195423570985008687907853269984665640564039457584007913129639936"
	for _, c := range []struct{ schema, valid, invalid string }{
		{"RelayerEvmPolicy", `{"gas_price_cap":` + max256 + `}`, `{"gas_price_cap":` + over256 + `}`},
		{"RelayerEvmPolicy", `{"gas_price_cap":"` + max256 + `"}`, `{"gas_price_cap":"1` + max256 + `"}`},
		{"RelayerEvmPolicy", `{"gas_price_cap":"007"}`, `{"gas_price_cap":"7.0"}`},
		{"RelayerEvmPolicy", `{"min_balance":null}`, `{"min_balance":""}`},
		{"RelayerEvmPolicy", `{"min_balance":1e21}`, `{"min_balance":0.5}`},
		{"EvmPolicyResponse", `{"min_balance":` + max256 + `}`, `{"min_balance":` + over256 + `}`},
		{"EvmPolicyResponse", `{"min_balance":7}`, `{"min_balance":"7"}`},
		{"EvmPolicyResponse", `{"min_balance":0}`, `{"min_balance":null}`},
		{"RelayerSolanaPolicy", `{"min_balance":9223372036854775807}`, `{"min_balance":9223372036854775808}`},
		{"RelayerSolanaPolicy", `{"max_signatures":2147483647}`, `{"max_signatures":2147483648}`},
		{"RelayerSolanaSwapConfig", `{"min_balance_threshold":18446744073709551615}`, `{"min_balance_threshold":18446744073709551616}`},
		{"SolanaAllowedTokensPolicy", `{"mint":"m","decimals":255}`, `{"mint":"m","decimals":256}`},
		{"StellarTokenMetadata", `{"decimals":4294967295}`, `{"decimals":4294967296}`},
		{"StellarTokenMetadata", `{"kind":"native"}`, `{"kind":{"classic":{"code":"c","issuer":"i"},"contract":{"contract_id":"c"}}}`},
		{"StellarTokenMetadata", `{"kind":{"classic":{"code":"c","issuer":"i"},"contract":null}}`, `{"kind":{"classic":null,"contract":null}}`},
		{"StellarTokenMetadata", `{"kind":{"contract":{"contract_id":"c"}}}`, `{"kind":"other"}`},
		{"RelayerStellarPolicy", `{"fee_payment_strategy":null}`, `{"fee_payment_strategy":"nobody"}`},
		{"RelayerStellarPolicy", `{"timeout_seconds":0}`, `{"timeout_seconds":-1}`},
		{"RpcConfig", `{"url":"WSS://h","weight":100.0}`, `{"url":"wss://h","weight":100.5}`},
		{"RpcConfig", `{"url":"http://u:p@h/k"}`, `{"url":"javascript:alert(1)"}`},
		{"RpcConfigResponse", `{"url":"https://h:1/***","weight":0}`, `{"url":"https://h:1/***"}`},
		{"DryRunChange", `{"changed":[]}`, `{}`},
		{"LastChange", `{"revision":1}`, `{"time":"2026-01-02T03:04:05.678Z"}`},
		{"PastChange", `{"revision":1,"relayer":null}`, `{"revision":1}`},
		{"RelayerId", `"_-aZ9"`, `"a.b"`},
		{"PaginationMeta", `{"current_page":4294967295,"per_page":0,"total_items":0}`, `{"current_page":0,"per_page":0,"total_items":0}`},
		{"PaginationMeta", `{"per_page":1,"total_items":0}`, `{"current_page":1,"total_items":0}`},
		{"UpdateRelayerRequest", `{"policies":{"max_fee":null}}`, `{"paused":null}`},
		{"UpdateRelayerRequest", `{"labels":{"team":null}}`, `{"labels":{"team":1}}`},
		{"Labels", `{"a.b_c/d-E":""}`, `{"-a":"b"}`},
		{"Labels", `{"` + strings.Repeat("k", 63) + `":"v"}`, `{"` + strings.Repeat("k", 64) + `":"v"}`},
		{"DisableRelayerRequest", `{"type":"x","details":null}`, `{"type":""}`},
	} {
		schema := d.schema("#/components/schemas/" + c.schema)
		for text, want := range map[string]bool{c.valid: true, c.invalid: false} {
			value := must(jsonschema.UnmarshalJSON(strings.NewReader(text)))(t)
			if err := schema.Validate(value); (err == nil) != want {
				t.Errorf("%s and %s: %v", c.schema, text, err)
			}
		}
	}
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// documentURL identifies the document in the schema compiler, which never fetches it.
const documentURL = "https://registry.invalid/openapi.json"

// document is the OpenAPI document as a JSON tree with exact numbers, and a JSON
// Schema compiler for it. kin-openapi is not exact: it reads bounds as 64-bit floats
// and does not check the bodies and headers of HEAD and 304.
type document struct {
	t        testing.TB
	tree     map[string]any
	compiler *jsonschema.Compiler
}

// read parses a document.
func read(t testing.TB, text []byte) *document {
	t.Helper()
	tree := must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(documentURL, tree); err != nil {
		t.Fatal(err)
	}
	return &document{t, tree.(map[string]any), compiler}
}

// readStrictly parses a document and closes its schemas. The document itself allows
// unknown members in responses, for later versions. Today there are none.
func readStrictly(t testing.TB, text []byte) *document {
	t.Helper()
	d := read(t, text)
	d.walk("#", d.tree, func(_ string, node map[string]any) {
		_, isSchema := node["properties"].(map[string]any)
		_, isReference := node["$ref"]
		_, isClosed := node["additionalProperties"]
		if isSchema && !isClosed && (node["type"] == "object" || isReference) {
			node["unevaluatedProperties"] = false
		}
	})
	return d
}

// schema returns the schema at a JSON pointer.
func (d *document) schema(pointer string) *jsonschema.Schema {
	d.t.Helper()
	return must(d.compiler.Compile(documentURL + pointer))(d.t)
}

// resolve follows references from a JSON pointer and returns the pointer of the
// object. A reference with other members next to it is a schema, not a reference.
func (d *document) resolve(pointer string) string {
	for {
		reference, ok := d.at(pointer)["$ref"].(string)
		if !ok || len(d.at(pointer)) > 1 {
			return pointer
		}
		pointer = reference
	}
}

// at returns the object at a JSON pointer, or nil.
func (d *document) at(pointer string) map[string]any {
	var node any = d.tree
	for _, step := range strings.Split(pointer, "/")[1:] {
		object, _ := node.(map[string]any)
		node = object[unescape.Replace(step)]
	}
	object, _ := node.(map[string]any)
	return object
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// walk calls visit for every object below node, except for example data.
func (d *document) walk(pointer string, node any, visit func(pointer string, node map[string]any)) {
	switch node := node.(type) {
	case map[string]any:
		visit(pointer, node)
		for name, below := range node {
			if name != "value" && name != "example" && name != "examples" || pointer == "#/components" {
				d.walk(pointer+"/"+escape.Replace(name), below, visit)
			}
		}
	case []any:
		for _, below := range node {
			d.walk(pointer+"/-", below, visit)
		}
	}
}

// examplesOf returns the examples next to a schema.
func (d *document) examplesOf(pointer string, node map[string]any) map[string]any {
	if node["schema"] == nil {
		return nil
	}
	found := make(map[string]any)
	if example, ok := node["example"]; ok {
		found["example"] = example
	}
	for name := range d.at(pointer + "/examples") {
		found[name] = d.at(d.resolve(pointer + "/examples/" + escape.Replace(name)))["value"]
	}
	return found
}
