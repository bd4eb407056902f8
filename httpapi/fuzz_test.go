package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// FuzzListQuery checks that an accepted query has the values of its text: the numbers, the
// selector of its filters, and the names of unknown parameters.
func FuzzListQuery(f *testing.F) {
	for _, seed := range []string{
		"", "page=1", "page=0&per_page=0", "per_page=4294967295", "page=4294967296", "page=-1", "page=%31", "page=1&page=2",
		"a;b", "%zz", "page=+1", "page", "=1", "&&", "page=1&x=%ff",
		"network=sepolia&network=mainnet&label.team=payments", "paused=true&paused=maybe", "network_type=foo", "id=a&id=a%20b",
		"search=&search=x", "search=%25%2C%7C", "label.=x", "label.a/b=%c3%a9", "label.owner=", "pausd=true&changes=true", "labels.team=x&Network=y",
		"after=", "after=7&per_page=2", "after=7&page=1", "rpc_urls=full", "search=1&search=2&search=3&search=4&search=5&search=6&search=7&search=8&search=9",
	} {
		f.Add(seed)
	}
	list := new(API).routes()[0]
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := list.parseQuery(raw)
		if err != nil {
			var invalid *relayer.ValidationError
			if !errors.As(err, &invalid) || len(invalid.Fields) == 0 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		values, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("%q was accepted but is not a query: %v", raw, err)
		}
		wantSelector(t, raw, values, q.selector, q.unknown)
		for name := range parameters {
			if isOf := slices.Contains(list.parameters, name); isOf && !slices.Equal(q.values[name], values[name]) {
				t.Errorf("%q: %s is %q", raw, name, q.values[name])
			}
		}
		for _, name := range []string{"page", "per_page"} {
			sent, given := values[name]
			if got := fmt.Sprint(q.number(name, 0)); given && (len(sent) != 1 || got != cmp.Or(strings.TrimLeft(sent[0], "0"), "0")) {
				t.Errorf("%q: %s is %s", raw, name, got)
			}
		}
	})
}

// wantSelector checks the selector of a query and its unknown parameters.
func wantSelector(t *testing.T, raw string, values url.Values, selector relayer.Selector, names []string) {
	t.Helper()
	var want relayer.Selector
	unknown := make(map[string]bool)
	for name, list := range values {
		switch {
		case strings.HasPrefix(name, "label.") || relayer.Selector{}.Where(name).Err() == nil:
			want = want.Where(name, list...)
		case !slices.Contains([]string{"page", "per_page", "after", "changes"}, name):
			unknown[name] = true
		}
	}
	if want.Err() != nil || selector.String() != want.String() {
		t.Errorf("%q: the selector is %s, want %s, error %v", raw, selector, want, want.Err())
	}
	if parsed, err := relayer.ParseSelector(want.String()); err != nil || parsed.String() != want.String() {
		t.Errorf("%q: %s is parsed as %s, error %v", raw, want, parsed, err)
	}
	for i, name := range names {
		if !unknown[name] || slices.Contains(names[:i], name) {
			t.Errorf("%q: %q is named as unknown", raw, name)
		}
	}
	if want := min(len(unknown), maxUnknown+1); len(names) != want {
		t.Errorf("%q: %d unknown parameters are named, want %d", raw, len(names), want)
	}
}

// FuzzHTTP sends any method, path, headers and body. Every response has a status and
// headers of the contract, and none is a server fault.
func FuzzHTTP(f *testing.F) {
	for _, seed := range []struct{ method, target, contentType, condition, body string }{
		{"GET", "/api/v1/relayers", "", "", ""},
		{"GET", "/api/v1/relayers?page=2&per_page=1", "", "", ""},
		{"GET", "/api/v1/relayers/r-1", "", `"1"`, ""},
		{"HEAD", "/api/v1/relayers/r-1", "", "*", ""},
		{"POST", "/api/v1/relayers", "application/json", "", `{"name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`},
		{"PATCH", "/api/v1/relayers/r-1", "application/merge-patch+json", `"1", W/"2"`, `{"paused":true}`},
		{"DELETE", "/api/v1/relayers/r-1", "", "", ""},
		{"PUT", "/api/v1/relayers/%2e%2e", "", "", "x"},
		{"OPTIONS", "//api/../v1", "text/plain; charset", "", ""},
		{"GET", "/api/v1/openapi.json", "", "", ""},
		{"GET", "/api/v1/relayers?paused=true&label.team=a&pausd", "", "", ""},
		{"POST", "/api/v1/relayers?dry_run=true", "application/json", "", `{"name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s","labels":{"a":"b"}}`},
		{"PATCH", "/api/v1/relayers/r-1?dry_run=true", "application/json", "", `{"labels":{"a":null}}`},
		{"GET", "/api/v1/access", "", "", ""},
		{"GET", "/api/v1/relayers/r-1?rpc_urls=full&changes=true", "", `"1"`, ""},
		{"GET", "/api/v1/relayers?rpc_urls=full&changes=true&after=", "", "", ""},
		{"GET", "/api/v1/relayers/r-1/history?before=7&per_page=1", "", "", ""},
		{"GET", "/api/v1/relayers:history?actor=a&action=pause&since=2026-01-02T03:04:05Z", "", "", ""},
		{"PUT", "/api/v1/relayers/r-1/disabled_reason", "application/json", "", `{"type":"x","details":"y"}`},
		{"DELETE", "/api/v1/relayers/r-1/disabled_reason", "", "", ""},
	} {
		f.Add(seed.method, seed.target, seed.contentType, seed.condition, []byte(seed.body))
	}
	known := map[int]bool{200: true, 201: true, 304: true, 400: true, 404: true, 405: true, 409: true, 412: true, 413: true, 415: true}
	f.Fuzz(func(t *testing.T, method, target, contentType, condition string, body []byte) {
		parsed, err := url.ParseRequestURI(target)
		if err != nil || strings.ContainsAny(method, " \r\n") || method == "" {
			t.Skip("net/http rejects this request")
		}
		manager, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		handler, err := New(manager, TrustHost(), WithMaxBodyBytes(1<<16), WithEngineOperations())
		if err != nil {
			t.Fatal(err)
		}
		_, err = manager.Documents().Create(t.Context(), []byte(`{"id":"r-1","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`))
		if err != nil {
			t.Fatal(err)
		}
		request := &http.Request{
			Method: method, URL: parsed, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "x",
			Header: http.Header{"Content-Type": {contentType}, "If-Match": {condition}, "If-None-Match": {condition}, "X-Request-Id": {condition}},
			Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}
		request = request.WithContext(relayer.WithActor(t.Context(), relayer.Actor{ID: "tester"}))
		if condition == "" {
			delete(request.Header, "If-Match")
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if !known[recorder.Code] {
			t.Fatalf("%s %s returned %d: %s", method, target, recorder.Code, recorder.Body)
		}
		for name, want := range map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			if got := recorder.Header().Get(name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		isEmpty := method == http.MethodHead || recorder.Code == http.StatusNotModified
		if isEmpty != (recorder.Body.Len() == 0) || !isEmpty && !json.Valid(recorder.Body.Bytes()) {
			t.Errorf("%s %s returned %d with %q", method, target, recorder.Code, recorder.Body)
		}
	})
}
