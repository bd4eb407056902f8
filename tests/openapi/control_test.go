package openapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const onePath = "/api/v1/relayers/r-1"

// realExchanges returns real exchanges with the handler by name.
func realExchanges(t *testing.T) map[string]exchange {
	t.Helper()
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(manager, httpapi.TrustHost())
	if err != nil {
		t.Fatal(err)
	}
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

// invalidResponses are exchanges that the handler never produces. kin-openapi accepts some
// of them, so it is not the only check: it reads bounds as 64-bit floats, does not
// check HEAD and 304, and accepts members and headers that are not described.
var invalidResponses = []struct {
	name, base string
	change     func(*exchange)
	passesKin  bool
}{
	{"another status", "read", func(x *exchange) { x.Status = 418 }, false},
	{"a status of another operation", "read", func(x *exchange) { x.Status = 201 }, false},
	{"a missing header", "read", set("ETag"), false},
	{"a duplicate header", "read", set("ETag", `"1"`, `"2"`), true},
	{"a wrong header", "read", set("Cache-Control", "public"), false},
	{"an undescribed header", "read", set("X-Powered-By", "Go"), true},
	{"no request id", "not found", set("X-Request-Id"), false},
	{"another content type", "read", set("Content-Type", "text/html"), false},
	{"no content type", "read", set("Content-Type"), false},
	{"a body that is not JSON", "read", replace("{", ""), false},
	{"a missing member", "read", replace(`"paused":false,`, ""), false},
	{"an additional member", "read", replace(`"paused":false,`, `"paused":false,"private":1,`), true},
	{"an additional member of a policy", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":1,"max_fee":1`), true},
	{"an additional member of the envelope", "read", replace(`"success":true`, `"success":true,"message":"ok"`), true},
	{"a member of another type", "read", replace(`"paused":false`, `"paused":"false"`), false},
	{"null in place of an omitted member", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":null`), false},
	{"wei as a string", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":"1"`), false},
	{"wei of 2^256", "read", replace(`"gas_price_cap":1`, `"gas_price_cap":115792089237316195423570985008687907853269984665640564039457584007913129639936`), true},
	{"another network type", "read", replace(`"evm"`, `"solana"`), false},
	{"an unknown network type", "read", replace(`"evm"`, `"fictional"`), false},
	{"an unmasked URL", "read", replace(`rpc.example/***`, `rpc.example/key`), true},
	{"an unmasked URL of a page", "cursor", replace(`rpc.example/***`, `u@rpc.example`), true},
	{"an unmasked URL of a history", "history", replace(`rpc.example/***`, `rpc.example/key`), true},
	{"a change without a revision", "cursor", replace(`"revision":1,`, ``), false},
	{"a position that is not text", "cursor", replace(`"position":"`, `"position":1,"p":"`), false},
	{"an entry of a history without a relayer", "history", replace(`"relayer":{`, `"other":{`), false},
	{"a weight out of bounds", "read", replace(`"weight":100`, `"weight":101`), false},
	{"an invalid ID", "read", replace(`"r-1"`, `"r.1"`), false},
	{"disabled without a reason", "read", replace(`"system_disabled":false`, `"system_disabled":true`), false},
	{"a reason without system_disabled", "read", replace(`"system_disabled":false`, `"system_disabled":false,"disabled_reason":{"type":"x","details":""}`), false},
	{"success false with status 200", "read", replace(`"success":true`, `"success":false`), false},
	{"HEAD with a body", "head", func(x *exchange) { x.Body = []byte("{}") }, true},
	{"HEAD without its ETag", "head", set("ETag"), true},
	{"HEAD with another status", "head", func(x *exchange) { x.Status = 201 }, true},
	{"304 with a body", "unmodified", func(x *exchange) { x.Body = []byte("{}") }, true},
	{"304 without its ETag", "unmodified", set("ETag"), true},
	{"a null page", "page", func(x *exchange) { x.Body = []byte(`{"success":true,"data":null}`) }, false},
	{"a page without its total", "page", replace(`,"total_items":1`, ""), false},
	{"an invalid query", "page", func(x *exchange) { x.Query = "page=4294967296" }, false},
	{"a create without Location", "created", set("Location"), false},
	{"a create with a wrong Location", "created", set("Location", "/api/v1/relayers/a.b"), false},
	{"a request with an unknown member", "created", replaceSent(`"id"`, `"color":1,"id"`), false},
	{"a request of another network's policy", "created", replaceSent(`gas_price_cap`, `max_signatures`), false},
	{"a request without a name", "created", replaceSent(`"name":"n",`, ""), false},
	{"a request of another type", "created", func(x *exchange) { x.RequestHeader = http.Header{"Content-Type": {"text/plain"}} }, false},
	{"a patch of a read-only member", "patched", replaceSent(`"paused"`, `"system_disabled"`), false},
	{"a failure without errors", "invalid", func(x *exchange) { x.Body = []byte(`{"success":false,"data":null,"message":"Bad Request"}`) }, false},
	{"a failure with errors", "not found", replace(`not found"`, `not found","errors":[{"message":"m"}]`), true},
	{"a failure with data", "not found", replace(`"data":null`, `"data":{}`), false},
	{"another message", "not found", replace(`Relayer with ID`, `No relayer`), false},
	{"405 without Allow", "not allowed", set("Allow"), false},
	{"an unknown method with status 200", "not allowed", func(x *exchange) { x.Status = 200 }, false},
	{"an unknown path with status 200", "no path", func(x *exchange) { x.Status = 200 }, false},
	{"another document", "document", func(x *exchange) { x.Body = []byte(`{"swagger":"2.0"}`) }, false},
}

// TestCheck_RealExchanges checks that both checks accept what the handler does.
func TestCheck_RealExchanges(t *testing.T) {
	exact, other := readStrictly(t, served(t)), newKin(t, served(t))
	for name, x := range realExchanges(t) {
		if err := exact.check(x); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := other.check(t.Context(), x); err != nil {
			t.Errorf("%s: kin-openapi: %v", name, err)
		}
	}
}

// TestControl_InvalidResponses proves that the check can fail.
func TestControl_InvalidResponses(t *testing.T) {
	exact, other := readStrictly(t, served(t)), newKin(t, served(t))
	for _, c := range invalidResponses {
		real, ok := realExchanges(t)[c.base]
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
		if err := other.check(t.Context(), changed); (err == nil) != c.passesKin {
			t.Errorf("%s: kin-openapi: %v", c.name, err)
		}
	}
}

// TestControl_UnseenResponse proves that a response which the suite does not provoke
// is detected.
func TestControl_UnseenResponse(t *testing.T) {
	d := read(t, served(t))
	seen := make(map[string]bool)
	for _, response := range d.responses() {
		seen[response] = true
	}
	if missing := unseen(d.responses(), seen); len(missing) > 0 {
		t.Errorf("unseen: %v", missing)
	}
	const removed = "GET /api/v1/relayers/{relayer_id} 304"
	delete(seen, removed)
	if missing := unseen(d.responses(), seen); !slices.Equal(missing, []string{removed}) {
		t.Errorf("unseen: %v", missing)
	}
}
