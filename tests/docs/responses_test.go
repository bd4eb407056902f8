package docs

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const samplesToken = "0123456789abcdef"

// newAPI returns a registry with some relayers, and its API.
func newAPI(t *testing.T, requests ...relayer.CreateRequest) (*relayer.Manager, http.Handler) {
	t.Helper()
	manager, err := relayer.New(memory.New())
	must(t, err)
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {samplesToken}})
	must(t, err)
	handler, err := httpapi.New(manager, authenticate)
	must(t, err)
	for _, request := range requests {
		_, err := manager.Create(t.Context(), request)
		must(t, err)
	}
	return manager, handler
}

// send returns the response to a request with a body in JSON.
func send(handler http.Handler, method, path, body, token string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Change-Reason", "incident 42")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

var minimal = relayer.CreateRequest{ID: "a", Name: "A", Network: "n", NetworkType: relayer.EVM, SignerID: "s"}

var (
	curlBody     = regexp.MustCompile(`(?s)-d '(.*?)'`)
	curlPath     = regexp.MustCompile(`http://127\.0\.0\.1:8080(/[^'\s]*)`)
	curlResponse = regexp.MustCompile(`(?m)^\{"success".*$`)
)

// The requests with a body are creates on one registry, the others gets. The response is in the same
// block or, so that the command can be copied, in the next one. A response with … is not complete.
func TestPages_CurlResponses(t *testing.T) {
	_, handler := newAPI(t)
	count := 0
	all := append(blocks(read(t, "README.md")), blocks(read(t, "docs/http.md"))...)
	for i, b := range all {
		if b.language == "sh" && i+1 < len(all) && all[i+1].language == "json" {
			b.text += all[i+1].text
		}
		path, want := curlPath.FindStringSubmatch(b.text), curlResponse.FindString(b.text)
		if path == nil || want == "" || strings.Contains(want, "…") {
			continue
		}
		count++
		method, body := http.MethodGet, ""
		if found := curlBody.FindStringSubmatch(b.text); found != nil {
			method, body = http.MethodPost, found[1]
		}
		if got := strings.TrimSpace(send(handler, method, path[1], body, samplesToken).Body.String()); got != want {
			t.Errorf("line %d: response is %s, want %s", b.line, got, want)
		}
	}
	if count != 3 {
		t.Errorf("found %d curl requests with a response, want 3", count)
	}
}

// varying matches what differs between two runs of the same requests.
var varying = regexp.MustCompile(`(?m)(^id: |"complete_ms":|"revision":|"time":"|"request_id":")[^,}"\n]+`)

// The stream of docs/http.md is that of a server: the relayer of the README, which is paused.
func TestPages_StreamEvents(t *testing.T) {
	t.Parallel()
	manager, handler := newAPI(t, relayer.CreateRequest{ID: "sepolia-1", Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer"})
	server := httptest.NewServer(handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/relayers:watch", nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+samplesToken)
	response, err := server.Client().Do(request)
	must(t, err)
	defer response.Body.Close()
	sample := partOf(t, "docs/http.md", "/api/v1/relayers:watch'\n", "\n```")
	lines := bufio.NewScanner(response.Body)
	for want := range strings.Lines(strings.TrimSpace(varying.ReplaceAllString(sample, "${1}N"))) {
		if !lines.Scan() {
			t.Fatalf("the stream ends before %q: %v", want, lines.Err())
		}
		if got := varying.ReplaceAllString(lines.Text(), "${1}N"); got != strings.TrimSpace(want) {
			t.Fatalf("a line is %q, want %q", got, want)
		}
		if lines.Text() == "event: resync" {
			_, err := manager.Pause(t.Context(), "sepolia-1")
			must(t, err)
		}
	}
}

// The sample of changes is that of a response.
func TestPages_ChangesSample(t *testing.T) {
	_, handler := newAPI(t, minimal)
	response := send(handler, http.MethodPatch, "/api/v1/relayers/a?changes=true", `{"paused":true}`, samplesToken)
	sample := strings.ReplaceAll(partOf(t, "docs/http.md", "```json\n", "\n```"), "\n", "")
	if got, want := varying.ReplaceAllString(response.Body.String(), "${1}N"), varying.ReplaceAllString(sample, "${1}N"); !strings.Contains(got, want) {
		t.Errorf("the response is %s, and the page has %s", got, want)
	}
}

// Statements of the pages about responses. Each was wrong once.
func TestPages_Responses(t *testing.T) {
	const label = "A key is 1 to 63 of A–Z a–z 0–9 _ . - / and begins and ends with a letter or digit. A value is at most 128 characters without control characters."
	_, handler := newAPI(t, minimal)
	for _, c := range []struct {
		page, statement           string
		method, path, body, token string
		status                    int
		etag                      string
	}{
		{"docs/library.md", "A preflight has no token, and gets 401.", "OPTIONS", "", "", "", 401, ""},
		{"docs/http.md", "The `ETag` of a dry run is the current revision.", "PATCH", "/a?dry_run=true", `{"paused":true}`, samplesToken, 200, `"1"`},
		{"docs/http.md", "a create gets 200 without `ETag` and `Location`", "POST", "?dry_run=true",
			`{"name":"b","network":"n","network_type":"evm","paused":false,"signer_id":"s"}`, samplesToken, 200, ""},
		{"docs/reference.md", label, "PATCH", "/a?dry_run=true", `{"labels":{"Az0_.-/9` + strings.Repeat("a", 55) + `":"` + strings.Repeat("é", 128) + `"}}`, samplesToken, 200, `"1"`},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"` + strings.Repeat("a", 64) + `":""}}`, samplesToken, 400, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"a":"` + strings.Repeat("b", 129) + `"}}`, samplesToken, 400, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"-a":"b"}}`, samplesToken, 400, ""},
		{"docs/reference.md", label, "PATCH", "/a", `{"labels":{"a:a":"b"}}`, samplesToken, 400, ""},
		{"docs/http.md", "Without it they are unknown: the paths are 404", "PUT", "/a/disabled_reason", `{"type":"x"}`, samplesToken, 404, ""},
		{"docs/http.md", "`after` together with `page` is 400.", "GET", "?after=&page=1", "", samplesToken, 400, ""},
		{"docs/http.md", "A value that the field cannot have is 400.", "GET", "?paused=maybe", "", samplesToken, 400, ""},
	} {
		wantSays(t, c.page, c.statement)
		response := send(handler, c.method, "/api/v1/relayers"+c.path, c.body, c.token)
		if response.Code != c.status || response.Header().Get("ETag") != c.etag {
			t.Errorf("%s %s: status %d, ETag %s, want %d, %s", c.method, c.path, response.Code, response.Header().Get("ETag"), c.status, c.etag)
		}
	}
}
