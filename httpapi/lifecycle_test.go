package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

const one = collection + "/r-1"

// patch sends a merge patch to the relayer r-1.
func (s *service) patch(body string, headers ...header) reply {
	s.t.Helper()
	return s.do("PATCH", one, body, headers...)
}

func TestPatch(t *testing.T) {
	const before = `"name":"n","network":"sepolia","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"s",` +
		`"notification_id":"note","custom_rpc_urls":[{"url":"https://a.example/***","weight":5}],` +
		`"policies":{"eip1559_pricing":true,"gas_price_cap":7,"whitelist_receivers":["x"]}`
	for name, c := range map[string]struct{ patch, old, new string }{
		"name":             {`{"name":"m"}`, `"name":"n"`, `"name":"m"`},
		"one policy field": {`{"policies":{"gas_price_cap":1e21}}`, `"gas_price_cap":7`, `"gas_price_cap":1000000000000000000000`},
		"policies cleared": {`{"policies":null}`, `{"eip1559_pricing":true,"gas_price_cap":7,"whitelist_receivers":["x"]}`, `{}`},
		"URLs replaced":    {`{"custom_rpc_urls":[{"url":"https://b.example/key"}]}`, `{"url":"https://a.example/***","weight":5}`, `{"url":"https://b.example/***","weight":100}`},
		"nothing":          {`{}`, ``, ``},
		"same full URL":    {`{"custom_rpc_urls":[{"url":"https://a.example/key","weight":5}]}`, ``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.create(minimal(`,"id":"r-1","notification_id":"note","custom_rpc_urls":[{"url":"https://a.example/key","weight":5}],
				"policies":{"gas_price_cap":7,"eip1559_pricing":true,"whitelist_receivers":["x"]}`))
			tag := s.do("GET", one, "").header.Get("ETag")
			got := s.patch(c.patch, with("Content-Type", "application/merge-patch+json"))
			want := `{"success":true,"data":{"id":"r-1",` + strings.Replace(before, c.old, c.new, 1) + `}}`
			if got.status != http.StatusOK || got.body != want {
				t.Fatalf("got  %d %s\nwant %s", got.status, got.body, want)
			}
			if changed := got.header.Get("ETag") != tag; changed != (c.old != c.new) {
				t.Errorf("the ETag changed from %s to %s", tag, got.header.Get("ETag"))
			}
			for _, same := range []reply{
				s.do("GET", one, ""),
				s.patch(c.patch, with("Content-Type", "application/json; charset=utf-8")),
			} {
				if same.body != got.body || same.header.Get("ETag") != got.header.Get("ETag") {
					t.Errorf("patched %s %s\nthen    %s %s", got.header.Get("ETag"), got.body, same.header.Get("ETag"), same.body)
				}
			}
		})
	}
}

// TestPatch_Invalid: a refused patch has no effect, and the response names every problem.
func TestPatch_Invalid(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://user:pw@a.example/key"}]`))
	defer s.unchanged()()
	got := s.patch(`{"id":"r-1","name":"","color":1,"paused":null,"policies":{"gas_price_cap":-1,"max_fee":1}}`)
	for field, message := range map[string]string{
		"id": "cannot be changed", "name": "must not be empty", "color": "is not a known field", "paused": "is required and must not be null",
		"policies.gas_price_cap": "must be 0 or more", "policies.max_fee": "is not a known field",
	} {
		wantProblem(t, got, field, message)
	}
	masked := s.patch(`{"custom_rpc_urls":[{"url":"https://a.example/***"}]}`)
	wantProblem(t, masked, "custom_rpc_urls[0].url", "must be the full URL, not the masked one that responses show")
	wantProblem(t, s.patch(""), "", "the body must be a JSON object, not empty")
}

func TestIfMatch(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1"`))
	first := s.do("GET", one, "").header.Get("ETag")
	current := s.patch(`{"paused":true}`, with("If-Match", first)).header.Get("ETag")
	if current == first || current == "" {
		t.Fatalf("the ETag changed from %s to %s", first, current)
	}
	check := s.unchanged()
	for _, values := range [][]string{{first}, {"W/" + current}, {strings.Trim(current, `"`)}, {`""`}, {""}, {`"x"`}, {`"0` + strings.Trim(current, `"`) + `"`}, {first, `"99"`}, {`"a,*,b"`}, {`"99", *`}, {"*, *"}, {"*", "*"}} {
		for _, got := range []reply{
			s.patch(`{"name":"m"}`, with("If-Match", values...)),
			s.patch(`{}`, with("If-Match", values...)),
			s.do("DELETE", one, "", with("If-Match", values...)),
		} {
			wantFailure(t, got, http.StatusPreconditionFailed, "Precondition Failed")
		}
	}
	check()
	for _, values := range [][]string{{"*"}, {`"99", ` + current}, {first, current}} {
		if got := s.patch(`{}`, with("If-Match", values...)); got.status != http.StatusOK {
			t.Errorf("If-Match %q returned %d", values, got.status)
		}
	}
	for _, got := range []reply{
		s.do("DELETE", collection+"/nobody", "", with("If-Match", "*")),
		s.do("DELETE", collection+"/nobody", "", with("If-Match", first)),
	} {
		wantFailure(t, got, http.StatusNotFound, "Relayer with ID nobody not found")
	}
	s.expect(http.StatusOK, "DELETE", one, "", with("If-Match", current))
}

// contendedStore is a store on which every update and delete loses a race.
type contendedStore struct{ relayer.Store }

func (contendedStore) Update(context.Context, relayer.Record) (relayer.Record, error) {
	return relayer.Record{}, relayer.ErrConflict
}

func (contendedStore) Delete(context.Context, string, uint64, []byte) error {
	return relayer.ErrConflict
}

// TestWrite_Contention: a lost race is 412 with a revision in If-Match. Without one the write
// is repeated, and too many lost races are 503.
func TestWrite_Contention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := apiOn(t, managerOn(t, contendedStore{memory.New()}), validTokens)
		created := serveHTTP(t.Context(), handler, "POST", collection, minimal(`,"id":"r-1"`))
		for _, method := range []string{"PATCH", "DELETE"} {
			patch := func(ifMatch ...string) *httptest.ResponseRecorder {
				return serveHTTP(t.Context(), handler, method, one, `{"paused":true}`, with("If-Match", ifMatch...))
			}
			if got := patch(created.Header().Get("ETag")); got.Code != http.StatusPreconditionFailed {
				t.Errorf("%s with If-Match: returned %d, want 412", method, got.Code)
			}
			for name, values := range map[string][]string{"without If-Match": nil, "with If-Match: *": {"*"}} {
				got := patch(values...)
				if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
					t.Errorf("%s %s: returned %d %v, want 503", method, name, got.Code, got.Header())
				}
			}
		}
	})
}
