package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

const openAPI = "/api/v1/openapi.json"

func TestOpenAPI_NoToken(t *testing.T) {
	file := must(os.ReadFile("openapi.json"))(t)
	s := serve(t, httpapi.WithRateLimit(0.01, 1))
	for _, authorization := range [][]string{nil, {"Bearer wrong"}, {"Bearer " + validToken}} {
		got := s.send("GET", openAPI, "", with("Authorization", authorization...))
		if got.status != http.StatusOK || got.body != string(file) || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %v %.100s", authorization, got.status, got.header, got.body)
		}
		wantHeaders(t, got)
		head := s.do("HEAD", openAPI, "", with("Authorization", authorization...))
		if head.status != http.StatusOK || head.header.Get("Content-Length") != fmt.Sprint(len(file)) {
			t.Errorf("%q: HEAD returned %d %v", authorization, head.status, head.header)
		}
	}
	s.expect(http.StatusOK, "GET", collection, "")
}

// TestOpenAPI_OtherPathsNeedToken: only one spelling of the path needs no token.
func TestOpenAPI_OtherPathsNeedToken(t *testing.T) {
	s := serve(t)
	for _, path := range []string{openAPI + "/", openAPI + "/..", "/" + openAPI, openAPI + "/../relayers", "/api%2Fv1/openapi.json", "/api/v1/openapi%2ejson", "/api/v1/OpenAPI.json", "/api/v1/x/../openapi.json"} {
		got := s.do("GET", path, "", with("Authorization"))
		wantFailure(t, got, http.StatusUnauthorized, "Unauthorized")
	}
}

// node is an object of the document.
type node map[string]any

// at returns the object at the names and follows references.
func (root node) at(t *testing.T, names ...string) node {
	t.Helper()
	object := root
	for _, name := range names {
		below, ok := object[name].(map[string]any)
		if !ok {
			t.Fatalf("the document has no %q", names)
		}
		object = below
		if reference, ok := object["$ref"].(string); ok {
			object = root.at(t, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
		}
	}
	return object
}

// examples compares the examples of the document with the responses of a service.
type examples struct {
	*service
	document node
	refusal  error           // of deletes and a resume, by the host
	unseen   map[string]bool // example responses that no request has returned
}

const example = collection + "/sepolia-1"

func serveExamples(t *testing.T) *examples {
	e := &examples{unseen: make(map[string]bool)}
	e.service = serveAs(t, validTokens, []relayer.Option{
		relayer.WithNetworkRules(),
		relayer.WithAddressResolver(exampleAddress),
		relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
			if o.Action == relayer.ActionDelete || o.Action == relayer.ActionResume && old.ID == "sepolia-1" {
				return e.refusal
			}
			return nil
		}),
	}, httpapi.WithEngineOperations())
	e.document = parse(t, e.send("GET", openAPI, "").body)
	for response := range e.document.at(t, "components", "responses") {
		for name := range responseExamples(e.document, response) {
			e.unseen[response+" "+name] = true
		}
	}
	return e
}

func exampleAddress(_ context.Context, req relayer.CreateRequest) (string, error) {
	if req.SignerID != "local-signer" {
		return "", relayer.ErrUnknownSigner
	}
	return map[relayer.NetworkType]string{
		relayer.EVM:     "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		relayer.Solana:  "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
		relayer.Stellar: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
	}[req.NetworkType], nil
}

// varying are the members of a response that differ in every run.
var varying = regexp.MustCompile(`"(time|position|request_id)":"[^"]+"`)

// expect checks that a response is an example of the document.
func (e *examples) expect(response, name string, got reply) {
	e.t.Helper()
	delete(e.unseen, response+" "+name)
	want := encode(e.t, e.document.at(e.t, "components", "responses", response, "content", "application/json", "examples", name)["value"])
	body := varying.ReplaceAllStringFunc(got.body, func(found string) string {
		name, _, _ := strings.Cut(found, ":")
		return name + ":" + map[string]string{`"time"`: `"2026-01-02T03:04:05.678Z"`, `"request_id"`: `"7f3k2d9m4q8s1v6x0z5b"`, `"position"`: `"4711.1767225600000000"`}[name]
	})
	if text := encode(e.t, parse(e.t, body)); text != want {
		e.t.Errorf("%s %s: got\n%s\nwant\n%s", response, name, text, want)
	}
}

// requestExample returns an example of a request.
func (e *examples) requestExample(path, method, contentType, name string) string {
	e.t.Helper()
	request := e.document.at(e.t, "paths", path, method, "requestBody", "content", contentType, "examples", name)
	return encode(e.t, request["value"])
}

// create sends an example of a create request.
func (e *examples) create(name string) reply {
	e.t.Helper()
	return e.do("POST", collection, e.requestExample(collection, "post", "application/json", name), with("X-Change-Reason", "the first relayer"))
}

// recreate deletes and creates the relayer that the examples change.
func (e *examples) recreate() {
	e.t.Helper()
	e.do("DELETE", example, "")
	e.create("evm")
}

func (e *examples) patch(body string, headers ...header) reply {
	e.t.Helper()
	return e.do("PATCH", example, body, append([]header{with("Content-Type", "application/merge-patch+json")}, headers...)...)
}

// TestOpenAPI_Examples sends the requests of the document's examples, and requests
// that cause all example responses.
func TestOpenAPI_Examples(t *testing.T) {
	e := serveExamples(t)
	e.checkReads()
	e.checkPatches()
	e.checkInvalidRequests()
	e.checkRefusals()
	e.checkDeletes()
	e.checkBulk()
	delete(e.unseen, "Document document") // an excerpt
	if len(e.unseen) > 0 {
		t.Errorf("no request returned these examples: %v", e.unseen)
	}
}

func (e *examples) checkReads() {
	for _, name := range []string{"evm", "solana", "stellar"} {
		created := e.create(name)
		e.expect("RelayerCreated", name, created)
		e.expect("RelayerFound", name, e.do("GET", created.header.Get("Location"), ""))
	}
	scratch := strings.Replace(e.requestExample(collection, "post", "application/json", "minimal"), "{", `{"id":"scratch",`, 1)
	e.expect("RelayerValid", "dry-run", e.do("POST", collection+"?dry_run=true&changes=true", scratch))
	e.expect("RelayerFound", "full-urls", e.do("GET", example+"?rpc_urls=full&changes=true", ""))
	e.checkHistory(scratch)
	e.expect("RelayerPage", "unknown-parameter", serve(e.t).do("GET", collection+"?pausd=true", ""))
	e.expect("RelayerPage", "first", e.do("GET", collection+"?per_page=2", ""))
	e.expect("RelayerPage", "past-the-end", e.do("GET", collection+"?page=4", ""))
	e.expect("RelayerPage", "cursor", e.do("GET", collection+"?after=&per_page=1&changes=true", ""))
	if got := e.create("minimal"); got.status != http.StatusCreated {
		e.t.Errorf("the smallest request returned %d: %s", got.status, got.body)
	}
	reason := e.requestExample(collection+"/{relayer_id}/disabled_reason", "put", "application/json", "nonce")
	e.do("PUT", example+"/disabled_reason", reason)
	e.expect("RelayerFound", "disabled", e.do("GET", example, ""))
	e.expect("Access", "all", serve(e.t).do("GET", access, ""))
	e.expect("Access", "team", serve(e.t, httpapi.WithAuthorizer(readsAllUpdatesTeam)).do("GET", access, ""))
}

func (e *examples) checkHistory(scratch string) {
	address := relayer.WithAddressResolver(exampleAddress)
	past := serveAs(e.t, validTokens, []relayer.Option{address}, httpapi.WithEngineOperations())
	past.create(scratch)
	const path = collection + "/scratch"
	past.do("PATCH", path, `{"paused":true}`, with("X-Change-Reason", "incident 42"))
	past.do("DELETE", path, "")
	e.expect("History", "changes", past.do("GET", path+"/history?per_page=2", ""))
}

func readsAllUpdatesTeam(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	switch access.Action {
	case relayer.ActionUpdate:
		return httpapi.Allow(payments), nil
	case relayer.ActionGet, relayer.ActionList, relayer.ActionWatch:
		return allow()
	default:
		return refuse()
	}
}

func (e *examples) checkPatches() {
	const path, contentType = collection + "/{relayer_id}", "application/merge-patch+json"
	for name := range e.document.at(e.t, "paths", path, "patch", "requestBody", "content", contentType, "examples") {
		e.recreate()
		e.expect("RelayerUpdated", name, e.patch(e.requestExample(path, "patch", contentType, name)))
	}
}

func (e *examples) checkInvalidRequests() {
	e.recreate()
	e.expect("InvalidRequest", "fields", e.do("POST", collection, `{"name":"","network":"sepolia","network_type":"evm","Paused":false,"signer_id":"local-signer","policies":{"gas_price_cap":-1}}`))
	e.expect("InvalidRequest", "not-json", e.do("POST", collection, `[]`))
	e.expect("InvalidRequest", "unknown-signer", e.do("POST", collection, strings.Replace(minimal(""), `"s"`, `"nobody"`, 1)))
	e.expect("InvalidPatch", "fields", e.patch(`{"network":"mainnet","custom_rpc_urls":[{"url":"https://eth-sepolia.example/***"}]}`))
	e.expect("InvalidQuery", "parameters", e.do("GET", collection+"?page=x&per_page=-1", ""))
	e.expect("InvalidQuery", "filter", e.do("GET", collection+"?paused=maybe", ""))
	e.expect("InvalidReason", "type", e.do("PUT", example+"/disabled_reason", `{}`))
	e.expect("InvalidQuery", "encoding", e.do("GET", collection+"?page=%zz", ""))
	e.expect("PayloadTooLarge", "too-large", e.patch(strings.Repeat(" ", 1<<20+1)))
	e.expect("UnsupportedMediaType", "content-type", e.do("POST", collection, "", with("Content-Type", "text/plain")))
	e.expect("UnsupportedMediaType", "content-encoding", e.do("POST", collection, minimal(""), with("Content-Encoding", "gzip")))
}

func (e *examples) checkRefusals() {
	e.recreate()
	e.expect("Unauthorized", "unauthorized", e.do("GET", collection, "", with("Authorization")))
	e.expect("RelayerNotFound", "not-found", e.do("GET", collection+"/nobody", ""))
	e.expect("PathNotFound", "not-found", e.do("GET", "/nowhere", ""))
	e.expect("RelayerOrPathNotFound", "not-found", e.do("DELETE", collection+"/nobody/disabled_reason", ""))
	e.expect("RelayerOrPathNotFound", "not-enabled", serve(e.t).do("DELETE", example+"/disabled_reason", ""))
	e.expect("MethodNotAllowed", "not-allowed", e.do("PUT", example, ""))
	e.expect("RelayerExists", "exists", e.create("evm"))
	e.expect("PreconditionFailed", "changed", e.patch(`{}`, with("If-Match", `"0"`)))
	refuses := func(context.Context, httpapi.Access) (httpapi.Decision, error) { return refuse() }
	e.expect("Forbidden", "forbidden", serve(e.t, httpapi.WithAuthorizer(refuses)).do("GET", collection, ""))
	limited := serve(e.t, httpapi.WithRateLimit(0.01, 1))
	limited.do("GET", collection, "")
	e.expect("TooManyRequests", "over-the-rate", limited.do("GET", collection, ""))
}

func (e *examples) checkDeletes() {
	e.recreate()
	e.refusal = relayer.Refuse("3 transactions are pending")
	e.expect("Refused", "dry-run", e.do("DELETE", example+"?dry_run=x", ""))
	e.expect("Refused", "pending", e.do("DELETE", example, ""))
	e.refusal = errors.New("queue broke")
	e.expect("InternalServerError", "fault", e.do("DELETE", example, ""))
	e.expect("ServiceUnavailable", "unavailable", serveManager(e.t, downManager(e.t), validTokens).do("GET", collection, ""))
	e.refusal = nil
	e.expect("RelayerDeleted", "deleted", e.do("DELETE", example, ""))
}

func (e *examples) checkBulk() {
	e.recreate()
	const filters = "?id=sepolia-1&id=solana-1&id=stellar-1"
	e.expect("Bulk", "paused", e.do("POST", collection+":pause"+filters, ""))
	e.refusal = relayer.Refuse("the nonce is not synchronized")
	e.expect("Bulk", "refused", e.do("POST", collection+":resume"+filters, ""))
}

func responseExamples(root node, response string) map[string]any {
	components := root["components"].(map[string]any)["responses"].(map[string]any)
	content, _ := components[response].(map[string]any)["content"].(map[string]any)
	document, ok := content["application/json"].(map[string]any)
	if !ok {
		return nil
	}
	return document["examples"].(map[string]any)
}

// wantEverywhere checks that every request returns the status, also one that is wrong in another way.
func wantEverywhere(t *testing.T, s *service, status int, headers ...header) {
	t.Helper()
	send := func(method, path, body string, more ...header) {
		t.Helper()
		s.expect(status, method, path, body, append(more, headers...)...)
	}
	for _, r := range authorizedRequests {
		send(r.method, r.path, r.body)
	}
	for _, path := range []string{access, changes, "/nowhere", "//", collection + "?page=x", one + "-secret"} {
		send("GET", path, "")
	}
	for _, path := range []string{collection, pause, resume, one, one + "/disabled_reason", one + "/history", allHistory, access, changes} {
		send("OPTIONS", path, "")
	}
	send("HEAD", access, "")
	send("POST", collection, "{", with("Content-Type", "text/plain"))
}

func TestAuth_NoTokenOnEveryRoute(t *testing.T) {
	wantEverywhere(t, serve(t, httpapi.WithEngineOperations()), http.StatusUnauthorized, with("Authorization"))
}

func TestAuth_FaultOnEveryRoute(t *testing.T) {
	out := serveAs(t, byToken(func(string) error { return relayer.ErrUnavailable }), nil, httpapi.WithEngineOperations())
	wantEverywhere(t, out, http.StatusServiceUnavailable)
	if !strings.Contains(out.log.String(), "request failed") {
		t.Errorf("no fault was logged: %s", out.log)
	}
	broken := serveAs(t, byToken(func(string) error { panic("directory broke") }), nil, httpapi.WithEngineOperations())
	wantEverywhere(t, broken, http.StatusInternalServerError)
}

// parse decodes an object and keeps its numbers as they are written.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document
}
