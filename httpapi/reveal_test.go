package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	fullURL   = `{"url":"https://user:pw@rpc.example/v2/key?a=b","weight":0.5,"headers":{"X-Key":"header-secret"}}`
	maskedURL = `{"url":"https://rpc.example/***","weight":0.5,"headers":{"X-Key":"***"}}`
)

// TestReveal: get, list and stream have the full RPC URLs if the query asks for them, and
// nothing else differs.
func TestReveal(t *testing.T) {
	s := serve(t, httpapi.WithEngineOperations())
	w := openStream(t, http.DefaultClient, s.url, "?rpc_urls=full")
	w.wantResync()
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[` + fullURL + `,{"url":"wss://b.example"}]`))
	s.create(minimal(`,"id":"r-2"`))
	for _, path := range []string{one + "?", collection + "?", collection + "?after=&paused=false&", one + "/history?"} {
		masked, full := s.do("GET", path, ""), s.do("GET", path+"rpc_urls=full", "")
		if strings.Contains(path, "history") { // it has no full URL in any form
			if !strings.Contains(full.body, maskedURL) || strings.Contains(full.body, "/v2/key") {
				t.Errorf("%s: %s", path, full.body)
			}
			continue
		}
		if want := strings.Replace(masked.body, maskedURL, fullURL, 1); full.status != http.StatusOK || full.body != want || full.body == masked.body {
			t.Errorf("%s: %d %s\nwant %s", path, full.status, full.body, want)
		}
		if full.header.Get("ETag") != masked.header.Get("ETag") {
			t.Errorf("%s: the ETag is %s", path, full.header.Get("ETag"))
		}
	}
	if e := w.want("created", "r-1"); !strings.Contains(e.data, fullURL) {
		t.Errorf("the event is %s", e.data)
	}
	w.want("created", "r-2")
	tag := s.do("GET", one, "").header.Get("ETag")
	s.expect(http.StatusNotModified, "GET", one+"?rpc_urls=full", "", with("If-None-Match", tag))
	wantFailure(t, s.do("GET", collection+"/nobody?rpc_urls=full", ""), http.StatusNotFound, "Relayer with ID nobody not found")
}

// TestReveal_NotEnabled: without the option the parameter is unknown.
func TestReveal_NotEnabled(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[` + fullURL + `]`))
	for _, path := range []string{one, collection} {
		got := s.do("GET", path+"?rpc_urls=full", "")
		if !strings.Contains(got.body, maskedURL) || !strings.Contains(got.body, `the query parameter \"rpc_urls\" is unknown and was ignored`) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if strings.Contains(s.log.String(), "full RPC URLs") {
		t.Errorf("the log is %s", s.log)
	}
}

// reveals is an authorizer that permits the full URLs of the team payments to engines, and
// reads of all relayers to everyone.
func reveals(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	switch {
	case access.Action != relayer.ActionReveal:
		return allow()
	case access.Actor.ID == "engine":
		return httpapi.Allow(payments), nil
	default:
		return refuse()
	}
}

// TestReveal_Permission: the permissions of the read and of the full URLs must both hold.
func TestReveal_Permission(t *testing.T) {
	s := serveAs(t, anyToken, nil, httpapi.WithEngineOperations(), httpapi.WithAuthorizer(reveals))
	s.as("reader", "POST", collection, scopedBody("in-1", "payments"))
	s.as("reader", "POST", collection, scopedBody("out-1", "risk"))
	for _, path := range []string{collection, collection + "/in-1", collection + "/nobody", changes} {
		wantFailure(t, s.as("reader", "GET", path+"?rpc_urls=full", ""), http.StatusForbidden, "Forbidden")
		wantFailure(t, s.as("reader", "GET", path+"?%72pc_urls=%66ull&rpc_urls=x", ""), http.StatusForbidden, "Forbidden")
	}
	list := s.as("engine", "GET", collection+"?rpc_urls=full", "")
	if !strings.Contains(list.body, "in-1-secret") || strings.Contains(list.body, "out-1") || !strings.Contains(list.body, `"total_items":1}`) {
		t.Errorf("the list is %s", list.body)
	}
	wantFailure(t, s.as("engine", "GET", collection+"/out-1?rpc_urls=full", ""), http.StatusNotFound, "Relayer with ID out-1 not found")
	if got := s.as("engine", "GET", collection+"/out-1", ""); got.status != http.StatusOK || strings.Contains(got.body, "secret") {
		t.Errorf("without the parameter: %d %s", got.status, got.body)
	}
}

// TestReveal_Log: every permitted request for full URLs is logged with its actor, also those
// for an unknown ID.
func TestReveal_Log(t *testing.T) {
	s := serveAs(t, anyToken, nil, httpapi.WithEngineOperations(), httpapi.WithAuthorizer(reveals))
	s.as("reader", "POST", collection, scopedBody("in-1", "payments"))
	s.as("reader", "GET", collection, "")
	for _, c := range []struct{ actor, path, want string }{
		{"engine", collection + "/in-1", `principal=engine address=127.0.0.1 method=GET route="GET /api/v1/relayers/{relayer_id}" relayer_id=in-1`},
		{"engine", collection + "/nobody", `relayer_id=nobody`},
		{"engine", collection + "/path%20secret", `relayer_id=""`},
		{"engine", collection, `route="GET /api/v1/relayers" relayer_id=""`},
	} {
		before := len(s.log.String())
		s.as(c.actor, "GET", c.path+"?rpc_urls=full", "")
		line := s.log.String()[before:]
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `msg="full RPC URLs requested" request_id=`) || !strings.Contains(line, c.want) {
			t.Errorf("%s %s logged %q, want %s", c.actor, c.path, line, c.want)
		}
	}
	before := len(s.log.String())
	openStream(t, http.DefaultClient, s.url, "?rpc_urls=full", as("engine")).wantResync()
	if line := s.log.String()[before:]; !strings.Contains(line, `principal=engine address=127.0.0.1 method=GET route="GET /api/v1/relayers:watch" relayer_id=""`) {
		t.Errorf("the stream logged %q", line)
	}
}

// unopenable are keys that cannot open what they sealed.
type unopenable struct{ keyring.Keyring }

func (unopenable) Seal(_ context.Context, plaintext, _ []byte) ([]byte, error) {
	return append([]byte("sealed"), plaintext...), nil
}

func (unopenable) Open(context.Context, []byte, []byte) ([]byte, error) {
	return nil, errors.New("the key of https://keys.example/v2/key is gone")
}

// TestReveal_Sealed: the URLs of a relayer that cannot be opened are masked, and the response
// says so. The log has the cause once.
func TestReveal_Sealed(t *testing.T) {
	store := memory.New()
	clear := managerOn(t, store)
	s := serveManager(t, sealing(t, store, unopenable{}), validTokens, httpapi.WithEngineOperations())
	w := openStream(t, http.DefaultClient, s.url, "?rpc_urls=full&changes=true")
	w.wantResync()
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[` + fullURL + `]`))
	request := relayer.CreateRequest{
		ID: "r-2", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
		CustomRPCURLs: []relayer.RPCConfig{{URL: "https://rpc.example/v2/key"}},
	}
	must(clear.Create(t.Context(), request))(t)
	const sealed = `"sealed":["r-1"]`
	if e := w.want("created", "r-1"); !strings.Contains(e.data, maskedURL) || !strings.Contains(e.data, ","+sealed+",") {
		t.Errorf("the event is %s", e.data)
	}
	if log := s.log.String(); !strings.Contains(log, "RPC URLs cannot be opened") { // by the stream, and no other request
		t.Errorf("the log is %s", log)
	}
	for _, path := range []string{one, collection, collection + "?after="} {
		got := s.do("GET", withParameter(path, "rpc_urls=full"), "")
		if got.status != http.StatusOK || !strings.Contains(got.body, maskedURL) || strings.Count(got.body, sealed) != 1 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if e := w.want("created", "r-2"); strings.Contains(e.data, `"sealed"`) || !strings.Contains(e.data, "https://rpc.example/v2/key") {
		t.Errorf("the event is %s", e.data)
	}
	for _, path := range []string{collection + "/r-2?rpc_urls=full", one} {
		if got := s.do("GET", path, ""); strings.Contains(got.body, `"sealed"`) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	log := s.log.String()
	if strings.Count(log, "RPC URLs cannot be opened") != 1 || !strings.Contains(log, "the key of https://keys.example/*** is gone") {
		t.Errorf("the log is %s", log)
	}
}
