package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const openAPI = "/api/v1/openapi.json"

func TestOpenAPIDocumentIsForEverybody(t *testing.T) {
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, httpapi.WithRateLimit(0.01, 1))
	for _, authorization := range [][]string{nil, {"Bearer wrong"}, {"Bearer " + validToken}} {
		got := s.send("GET", openAPI, "", with("Authorization", authorization...))
		if got.status != http.StatusOK || got.body != string(file) || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %v %.100s", authorization, got.status, got.header, got.body)
		}
		checkHeaders(t, got)
		head := s.do("HEAD", openAPI, "", with("Authorization", authorization...))
		if head.status != http.StatusOK || head.header.Get("Content-Length") != fmt.Sprint(len(file)) || head.header.Get("ETag") != got.header.Get("ETag") {
			t.Errorf("%q: HEAD answered %d %v", authorization, head.status, head.header)
		}
	}
	if got := s.do("GET", collection, ""); got.status != http.StatusOK {
		t.Errorf("the document used up the rate: %d", got.status)
	}
}

func TestOpenAPIDocumentNotModified(t *testing.T) {
	s := serve(t)
	tag := s.send("GET", openAPI, "").header.Get("ETag")
	for _, method := range []string{"GET", "HEAD"} {
		got := s.do(method, openAPI, "", with("If-None-Match", tag))
		if got.status != http.StatusNotModified || got.header.Get("ETag") != tag {
			t.Errorf("%s answered %d with ETag %q", method, got.status, got.header.Get("ETag"))
		}
	}
	if got := s.send("GET", openAPI, "", with("If-None-Match", `"another"`)); got.status != http.StatusOK {
		t.Errorf("another ETag answered %d", got.status)
	}
}

func TestOpenAPIDocumentHasNoOtherMethods(t *testing.T) {
	s := serve(t)
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} {
		for _, authorization := range [][]string{nil, {"Bearer " + validToken}} {
			got := s.do(method, openAPI, "", with("Authorization", authorization...))
			expectFailure(t, got, http.StatusMethodNotAllowed, "Method Not Allowed")
			if allow := got.header.Get("Allow"); allow != "GET, HEAD" {
				t.Errorf("Allow is %q", allow)
			}
		}
	}
}

// Only the one spelling of the path is open: no other may lead around
// authentication.
func TestOpenAPIDocumentOpensNothingElse(t *testing.T) {
	s := serve(t)
	for _, path := range []string{openAPI + "/", openAPI + "/..", "/" + openAPI, openAPI + "/../relayers", "/api%2Fv1/openapi.json", "/api/v1/openapi%2ejson", "/api/v1/OpenAPI.json", "/api/v1/x/../openapi.json"} {
		got := s.do("GET", path, "", with("Authorization"))
		expectFailure(t, got, http.StatusUnauthorized, "Unauthorized")
	}
}

func TestWithoutOpenAPI(t *testing.T) {
	s := serve(t, httpapi.WithoutOpenAPI())
	for _, method := range []string{"GET", "HEAD", "POST"} {
		if got := s.do(method, openAPI, "", with("Authorization")); got.status != http.StatusUnauthorized {
			t.Errorf("%s without a token answered %d", method, got.status)
		}
		if got := s.do(method, openAPI, ""); got.status != http.StatusNotFound {
			t.Errorf("%s answered %d", method, got.status)
		}
	}
}

func TestOpenAPIDocumentUnderAPrefix(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(manager, httpapi.Tokens(validToken))
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	http.StripPrefix("/registry", recorded(handler)).ServeHTTP(recorder, httptest.NewRequest("GET", "/registry"+openAPI, nil))
	if recorder.Code != http.StatusOK {
		t.Errorf("answered %d", recorder.Code)
	}
}

// node is a part of the document.
type node map[string]any

// at returns the object below the names, whatever references lead there.
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

// TestExamplesAreTrue sends every request of the document's examples, and
// whatever leads to the others, and expects the answers that the document
// shows.
func TestExamplesAreTrue(t *testing.T) {
	guard := func(context.Context, *relayer.Relayer) (string, error) { return "", nil }
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{
		relayer.WithNetworkRules(),
		relayer.WithAddressResolver(exampleAddress),
		relayer.WithDeleteGuard(func(ctx context.Context, r *relayer.Relayer) (string, error) { return guard(ctx, r) }),
	})
	document := node(parse(t, s.send("GET", openAPI, "").body))
	unseen := make(map[string]bool)
	for name := range document.at(t, "components", "responses") {
		for example := range responseExamples(document, name) {
			unseen[name+" "+example] = name != "OpenAPIDocument"
		}
	}
	expect := func(response, example string, got reply) {
		t.Helper()
		unseen[response+" "+example] = false
		want := encode(t, document.at(t, "components", "responses", response, "content", "application/json", "examples", example)["value"])
		if text := encode(t, parse(t, got.body)); text != want {
			t.Errorf("%s %s: got\n%s\nwant\n%s", response, example, text, want)
		}
	}
	create := func(example string) reply {
		request := document.at(t, "paths", collection, "post", "requestBody", "content", "application/json", "examples", example)
		return s.do("POST", collection, encode(t, request["value"]))
	}

	for _, example := range []string{"evm", "solana", "stellar"} {
		created := create(example)
		expect("RelayerCreated", example, created)
		expect("Relayer", example, s.do("GET", created.header.Get("Location"), ""))
	}
	expect("RelayerPage", "first", s.do("GET", collection+"?per_page=2", ""))
	expect("RelayerPage", "past-the-end", s.do("GET", collection+"?page=4", ""))
	if got := create("minimal"); got.status != http.StatusCreated {
		t.Errorf("the smallest request answered %d: %s", got.status, got.body)
	}

	const path = collection + "/sepolia-1"
	patch := func(body string, headers ...header) reply {
		return s.do("PATCH", path, body, append([]header{with("Content-Type", "application/merge-patch+json")}, headers...)...)
	}
	patches := []string{"paths", collection + "/{relayer_id}", "patch", "requestBody", "content", "application/merge-patch+json", "examples"}
	for example := range document.at(t, patches...) {
		s.do("DELETE", path, "")
		create("evm")
		expect("RelayerUpdated", example, patch(encode(t, document.at(t, append(patches, example)...)["value"])))
	}

	s.do("DELETE", path, "")
	create("evm")
	if _, err := s.manager.Disable(t.Context(), "sepolia-1", relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "the RPC endpoint timed out"}); err != nil {
		t.Fatal(err)
	}
	expect("Relayer", "disabled", s.do("GET", path, ""))

	expect("InvalidRequest", "fields", s.do("POST", collection, `{"name":"","network":"sepolia","network_type":"evm","Paused":false,"signer_id":"local-signer","policies":{"gas_price_cap":-1}}`))
	expect("InvalidRequest", "not-json", s.do("POST", collection, `[]`))
	expect("InvalidRequest", "unknown-signer", s.do("POST", collection, strings.Replace(minimal(""), `"s"`, `"nobody"`, 1)))
	expect("InvalidPatch", "fields", patch(`{"name":"","custom_rpc_urls":[{"url":"https://eth-sepolia.example/***"}]}`))
	expect("InvalidQuery", "parameters", s.do("GET", collection+"?page=x&per_page=-1", ""))
	expect("InvalidQuery", "encoding", s.do("GET", collection+"?page=%zz", ""))
	expect("Unauthorized", "unauthorized", s.do("GET", collection, "", with("Authorization")))
	expect("RelayerNotFound", "not-found", s.do("GET", collection+"/nobody", ""))
	expect("PathNotFound", "not-found", s.do("GET", "/nowhere", ""))
	expect("MethodNotAllowed", "not-allowed", s.do("PUT", path, ""))
	expect("RelayerExists", "exists", create("evm"))
	expect("PreconditionFailed", "changed", patch(`{}`, with("If-Match", `"0"`)))
	expect("PayloadTooLarge", "too-large", patch(strings.Repeat(" ", httpapi.DefaultMaxBodyBytes+1)))
	expect("UnsupportedMediaType", "content-type", s.do("POST", collection, "", with("Content-Type", "text/plain")))
	expect("UnsupportedPatchType", "content-type", s.do("PATCH", path, ""))

	guard = func(context.Context, *relayer.Relayer) (string, error) { return "3 transactions are pending", nil }
	expect("DeleteRefused", "pending", s.do("DELETE", path, ""))
	guard = func(context.Context, *relayer.Relayer) (string, error) { return "", errors.New("queue broke") }
	expect("InternalServerError", "fault", s.do("DELETE", path, ""))
	guard = func(context.Context, *relayer.Relayer) (string, error) { return "", relayer.ErrUnavailable }
	expect("ServiceUnavailable", "unavailable", s.do("DELETE", path, ""))
	guard = func(context.Context, *relayer.Relayer) (string, error) { return "", nil }
	expect("RelayerDeleted", "deleted", s.do("DELETE", path, ""))
	limited := serve(t, httpapi.WithRateLimit(0.01, 1))
	limited.do("GET", collection, "")
	expect("TooManyRequests", "over-the-rate", limited.do("GET", collection, ""))

	maps.DeleteFunc(unseen, func(_ string, isUnseen bool) bool { return !isUnseen })
	if len(unseen) > 0 {
		t.Errorf("no request leads to these examples: %v", unseen)
	}
}

func responseExamples(document node, response string) map[string]any {
	components := document["components"].(map[string]any)["responses"].(map[string]any)
	content, ok := components[response].(map[string]any)["content"].(map[string]any)
	if !ok {
		return nil
	}
	return content["application/json"].(map[string]any)["examples"].(map[string]any)
}

func exampleAddress(_ context.Context, signerID string, networkType relayer.NetworkType, _ string) (string, error) {
	if signerID != "local-signer" {
		return "", relayer.ErrUnknownSigner
	}
	return map[relayer.NetworkType]string{
		relayer.EVM:     "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		relayer.Solana:  "9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM",
		relayer.Stellar: "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ",
	}[networkType], nil
}

// everyRequest has one request for each operation, and for what is none.
var everyRequest = []struct{ method, path, contentType, body string }{
	{"GET", collection, "", ""},
	{"HEAD", collection, "", ""},
	{"POST", collection, "application/json", minimal("")},
	{"PUT", collection, "", ""},
	{"GET", one, "", ""},
	{"HEAD", one, "", ""},
	{"PATCH", one, "application/json", "{}"},
	{"DELETE", one, "", ""},
	{"PUT", one, "", ""},
	{"GET", "/nowhere", "", ""},
}

// expectEverywhere checks that every request is answered with a status.
func expectEverywhere(t *testing.T, s *service, status int, headers ...header) {
	t.Helper()
	for _, r := range everyRequest {
		got := s.do(r.method, r.path, r.body, append([]header{with("Content-Type", r.contentType)}, headers...)...)
		if got.status != status {
			t.Errorf("%s %s answered %d, want %d", r.method, r.path, got.status, status)
		}
	}
}

func TestFaultsOfAuthenticationAreTheSameEverywhere(t *testing.T) {
	out := serveAs(t, httpapi.AuthFunc(func(context.Context, string) (string, error) { return "", relayer.ErrUnavailable }), nil)
	expectEverywhere(t, out, http.StatusServiceUnavailable)
	broken := serveAs(t, httpapi.AuthFunc(func(context.Context, string) (string, error) { panic("directory broke") }), nil)
	expectEverywhere(t, broken, http.StatusInternalServerError)
}

func TestGuessesAreSlowedDownEverywhere(t *testing.T) {
	s := serve(t, httpapi.WithGuessLimit(0.01, 1))
	wrong := with("Authorization", "Bearer wrong")
	s.do("GET", collection, "", wrong)
	expectEverywhere(t, s, http.StatusTooManyRequests, wrong)
}

// The document is no way around the limit of requests in flight.
func TestOpenAPIDocumentWhileTooMuchIsInFlight(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) {
		close(entered)
		<-leave
		return "", nil
	}
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(1))
	var waiting sync.WaitGroup
	waiting.Go(func() { s.do("POST", collection, minimal("")) })
	<-entered
	for _, method := range []string{"GET", "HEAD", "PUT"} {
		if got := s.do(method, openAPI, ""); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("%s answered %d", method, got.status)
		}
	}
	close(leave)
	waiting.Wait()
}

func TestHeadOfOneOverTheRate(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(0.01, 1))
	s.do("HEAD", one, "")
	if got := s.do("HEAD", one, ""); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("answered %d", got.status)
	}
}
