package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// serveEngine starts a registry with engine operations and the relayer r-1.
func serveEngine(t *testing.T) *service {
	t.Helper()
	s := serve(t, httpapi.WithEngineOperations())
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://user:pw@rpc.example/v2/key?a=b","weight":0.5},{"url":"wss://b.example"}]`))
	return s
}

func TestEngine_DisableEnable(t *testing.T) {
	s := serveEngine(t)
	const path = one + "/disabled_reason"
	first := s.do("GET", one, "").header.Get("ETag")
	got := s.do("PUT", path, `{"type":"NonceSyncFailed","details":"Post \"https://user:pw@rpc.example/v2/key?a=b\": refused"}`, with("If-Match", first))
	const reason = `"disabled_reason":{"type":"NonceSyncFailed","details":"Post \"https://rpc.example/***\": refused"}`
	if got.status != http.StatusOK || !strings.Contains(got.body, reason) || !strings.Contains(got.body, `"system_disabled":true`) {
		t.Errorf("disable returned %d %s", got.status, got.body)
	}
	if read := s.do("GET", one, ""); read.body != got.body || read.header.Get("ETag") != got.header.Get("ETag") {
		t.Errorf("disable returned %s, and get %s", got.body, read.body)
	}
	wantFailure(t, s.do("PUT", path, `{"type":"x"}`, with("If-Match", first)), http.StatusPreconditionFailed, "Precondition Failed")
	if got := s.do("PUT", path, `{"type":"x","details":null}`); !strings.Contains(got.body, `"disabled_reason":{"type":"x","details":""}`) {
		t.Errorf("a second reason: %d %s", got.status, got.body)
	}
	wantFailure(t, s.do("DELETE", path, "", with("If-Match", first)), http.StatusPreconditionFailed, "Precondition Failed")
	enabled := s.do("DELETE", path, "")
	if enabled.status != http.StatusOK || !strings.Contains(enabled.body, `"system_disabled":false`) || strings.Contains(enabled.body, "reason") || strings.Contains(enabled.body, `"change"`) {
		t.Errorf("enable returned %d %s", enabled.status, enabled.body)
	}
	if again := s.do("DELETE", path, ""); again.text("") != enabled.text("") {
		t.Errorf("a repetition returned %s", again.text(""))
	}
	for _, method := range []string{"PUT", "DELETE"} {
		got := s.do(method, collection+"/nobody/disabled_reason", `{"type":"x"}`)
		wantFailure(t, got, http.StatusNotFound, "Relayer with ID nobody not found")
	}
}

func TestEngine_InvalidReason(t *testing.T) {
	s := serveEngine(t)
	defer s.unchanged()()
	for body, problem := range map[string]relayer.FieldError{
		``:                           {Message: "the body must be a JSON object, not empty"},
		`[]`:                         {Message: "the body must be a JSON object"},
		`{"details":"x"}`:            {Field: "type", Message: "is required"},
		`{"type":""}`:                {Field: "type", Message: "must not be empty"},
		`{"type":null}`:              {Field: "type", Message: "is required and must not be null"},
		`{"type":"x","details":[]}`:  {Field: "details", Message: "must be a string"},
		`{"type":"x","type":"y"}`:    {Field: "type", Message: "must not be given more than once"},
		`{"type":"x","Details":"y"}`: {Field: "Details", Message: `is not a known field, did you mean "details"?`},
		`{"type":"` + strings.Repeat("x", 257) + `"}`:        {Field: "type", Message: "must be at most 256 bytes"},
		`{"type":"x"` + strings.Repeat(`,"y":1`, 1001) + `}`: {Message: "only the first 1000 problems are listed"},
	} {
		wantProblem(t, s.do("PUT", one+"/disabled_reason", body), problem.Field, problem.Message)
	}
}

// TestEngine_NotEnabled: without the option the paths are unknown, whether or not the relayer
// exists.
func TestEngine_NotEnabled(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1"`))
	for _, path := range []string{one + "/disabled_reason", collection + "/nobody/disabled_reason"} {
		for _, method := range []string{"GET", "PUT", "DELETE", "POST"} {
			wantFailure(t, s.do(method, path, `{"type":"x"}`), http.StatusNotFound, "Not Found")
		}
		s.expect(http.StatusNotFound, "HEAD", path, "")
	}
}
