package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
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
		`{"type":"` + strings.Repeat("x", 257) + `"}`:        {Field: "type", Message: "must be at most 256 characters"},
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

const dryRun = "?dry_run=true"

// TestDryRun: the response is that of the write, and nothing is stored. That of a create is 200 without
// a Location.
func TestDryRun(t *testing.T) {
	refused := errors.New("")
	admit := func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete && old.Name == "pending" {
			return relayer.Refuse("transactions are pending")
		}
		if o.Action == relayer.ActionDelete && old.Name == "broken" {
			return refused
		}
		return nil
	}
	for _, c := range []struct {
		name, method, body string
		header             header
		want               int
	}{
		{"n", "PATCH", `{"name":"m"}`, with("X"), 200},
		{"n", "PATCH", `{"paused":true}`, with("X"), 200},
		{"n", "PATCH", `{}`, with("X"), 200},
		{"n", "PATCH", `{"name":""}`, with("X"), 400},
		{"n", "PATCH", `{"name":"m"}`, with("If-Match", `"0"`), 412},
		{"n", "PUT", `{"type":"x"}`, with("X"), 200},
		{"n", "DELETE", "", with("X"), 200},
		{"n", "DELETE", "", with("If-Match", `"0"`), 412},
		{"pending", "DELETE", "", with("X"), 400},
		{"broken", "DELETE", "", with("X"), 500},
		{"n", "POST", minimal(`,"id":"r-2","custom_rpc_urls":[{"url":"https://rpc.example/v2/key"}]`), with("X"), 200},
		{"n", "POST", minimal(`,"policies":{"gas_price_cap":-1}`), with("X"), 400},
		{"n", "POST", minimal(`,"id":"r-1"`), with("X"), 409},
		{"n", "POST", minimal(`,"notification_id":"` + strings.Repeat("x", 1<<20) + `"`), with("X"), 413},
		{"n", "POST", minimal(""), with("Content-Type", "text/plain"), 415},
	} {
		path := map[string]string{"POST": collection, "PUT": one + "/disabled_reason", "PATCH": one, "DELETE": one}[c.method]
		s := serveAs(t, validTokens, []relayer.Option{relayer.WithAdmission(admit)}, httpapi.WithEngineOperations())
		s.create(strings.Replace(minimal(`,"id":"r-1"`), `"name":"n"`, `"name":"`+c.name+`"`, 1))
		check, tag := s.unchanged(), s.do("GET", one, "").header.Get("ETag")
		send := func(query string) reply {
			got := s.do(c.method, path+query, c.body, c.header)
			if got.status == http.StatusCreated && query == "?dry_run=false" {
				got.header.Del("Location")
				got.status = http.StatusOK
			}
			if got.status != c.want {
				t.Errorf("%s %s%s returned %d, want %d: %s", c.method, c.body, query, got.status, c.want, got.body)
			}
			return got
		}
		dry := send("?dry_run=true")
		check()
		if c.method == "PATCH" && c.want == 200 && dry.header.Get("ETag") != tag {
			t.Errorf("%s: the ETag is %s, want the current %s", c.body, dry.header.Get("ETag"), tag)
		}
		real := send("?dry_run=false")
		if c.name == "pending" {
			wantProblem(t, real, "", "transactions are pending")
		}
		if c.want >= 400 {
			check()
		}
		dry.header.Del("ETag")
		real.header.Del("ETag")
		if dry.text("") != real.text("") {
			t.Errorf("%s %s: the dry run returned\n%s\nthe change\n%s", c.method, c.body, dry.text(""), real.text(""))
		}
	}
}

// numbering are keys whose results differ each time, as those of a cipher with a nonce.
type numbering struct {
	keyring.Keyring
	seals byte
}

func (n *numbering) Seal(_ context.Context, private, _ []byte) ([]byte, error) {
	n.seals++
	return append([]byte{n.seals}, private...), nil
}

func (*numbering) Open(_ context.Context, text, _ []byte) ([]byte, error) { return text[1:], nil }

// sealing returns a Manager on a store with these keys.
func sealing(t *testing.T, db relayer.Store, keys sealed.Keys) *relayer.Manager {
	t.Helper()
	return managerOn(t, must(sealed.New(db, keys))(t))
}

// TestDryRun_Changed: a dry run says what would change, also in the hidden part of an RPC URL,
// sealed or not.
func TestDryRun_Changed(t *testing.T) {
	for name, manager := range map[string]*relayer.Manager{"clear": managerOn(t, nil), "sealed": sealing(t, memory.New(), new(numbering))} {
		t.Run(name, func(t *testing.T) {
			s := serveManager(t, manager, validTokens, httpapi.WithEngineOperations())
			s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://rpc.example/v2/old"}],"labels":{"team":"a"}`))
			defer s.unchanged()()
			for _, c := range []struct{ method, path, body, want string }{
				{"PATCH", one, `{}`, `[]`},
				{"PATCH", one, `{"name":"n"}`, `[]`},
				{"PATCH", one, `{"name":"m","labels":{"team":null,"x":"y"}}`, `["labels.team","labels.x","name"]`},
				{"PATCH", one, `{"paused":false}`, `[]`},
				{"PATCH", one, `{"paused":true}`, `["paused"]`},
				{"PATCH", one, `{"custom_rpc_urls":[{"url":"https://rpc.example/v2/old"}]}`, `[]`},
				{"PATCH", one, `{"custom_rpc_urls":[{"url":"https://rpc.example/v2/new"}]}`, `["custom_rpc_urls"]`},
				{"PATCH", one, `{"custom_rpc_urls":[{"url":"https://rpc.example/v2/old","weight":1}]}`, `["custom_rpc_urls"]`},
				{"PUT", one + "/disabled_reason", `{"type":"x"}`, `["disabled_reason.details","disabled_reason.type","system_disabled"]`},
				{"DELETE", one + "/disabled_reason", "", `[]`},
				{"POST", collection, minimal(""), `["address","id","name","network","network_type","paused","policies","signer_id","system_disabled"]`},
				{"DELETE", one, "", `["address","custom_rpc_urls","id","labels.team","name","network","network_type","paused","policies","signer_id","system_disabled"]`},
			} {
				got := s.do(c.method, c.path+dryRun+"&changes=true", c.body)
				if want := `,"change":{"changed":` + c.want + `}}`; got.status != http.StatusOK || !strings.HasSuffix(got.body, want) || got.header.Get("Location") != "" {
					t.Errorf("%s %s %s returned %d %s, want %s", c.method, c.path, c.body, got.status, got.body, want)
				}
				if got := s.do(c.method, c.path+dryRun, c.body); strings.Contains(got.body, `"change"`) {
					t.Errorf("%s %s without changes=true returned %s", c.method, c.path, got.body)
				}
			}
		})
	}
}

// waitingStore is a store that does not respond before the context is done.
type waitingStore struct{ relayer.Store }

func (waitingStore) List(ctx context.Context, _ relayer.StoreQuery) (relayer.Listing, error) {
	<-ctx.Done()
	return relayer.Listing{}, ctx.Err()
}

// TestContext_Ended: an operation ends with the context of the request, whether the host
// has set a deadline or the client is gone, and its error is logged at level debug.
func TestContext_Ended(t *testing.T) {
	type key struct{}
	auth := func(r *http.Request) (relayer.Actor, error) {
		if r.Context().Value(key{}) != "value" {
			return relayer.Actor{}, httpapi.ErrUnauthorized
		}
		return relayer.Actor{ID: "alice"}, nil
	}
	for _, name := range []string{"deadline", "gone client"} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			handler := apiOn(t, managerOn(t, waitingStore{memory.New()}), auth, httpapi.WithLogger(newLogger(&log)))
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			if name == "deadline" {
				ctx, cancel = context.WithTimeout(ctx, time.Second)
			} else {
				time.AfterFunc(time.Second, cancel)
			}
			defer cancel()
			begin := time.Now()
			got := serveHTTP(ctx, handler, "GET", collection, "")
			if took := time.Since(begin); got.Code != http.StatusServiceUnavailable || took != time.Second {
				t.Errorf("%s: returned %d after %v", name, got.Code, took)
			}
			if !strings.Contains(log.String(), `level=DEBUG msg="request failed"`) {
				t.Errorf("%s: log %q", name, log.String())
			}
		})
	}
}

// A refused body closes an HTTP/1 connection only: an HTTP/2 connection carries other requests too.
func TestRefusal_KeepsConnectionOfHTTP2(t *testing.T) {
	api, _ := newAPI(t, validTokens)
	server := httptest.NewUnstartedServer(api)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	var connections []bool // whether the connection was used before
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { connections = append(connections, info.Reused) }})
	for range 5 {
		request := must(http.NewRequestWithContext(ctx, "POST", server.URL+collection, strings.NewReader("{}")))(t)
		got := must(server.Client().Do(request))(t)
		if _ = got.Body.Close(); got.StatusCode != http.StatusUnauthorized || got.ProtoMajor != 2 {
			t.Errorf("returned %d over %s", got.StatusCode, got.Proto)
		}
	}
	if !slices.Equal(connections, []bool{false, true, true, true, true}) {
		t.Errorf("connections were used again: %v", connections)
	}
}

// What fails after the client has gone, but not because of it, is a fault in the log. A change of
// several relayers goes on.
func TestLog_FaultAfterEnd(t *testing.T) {
	for target, body := range map[string]string{collection: minimal(`,"id":"other"`), resume + "?all=true": ""} {
		var log bytes.Buffer
		db := memory.New()
		createIn(t, managerOn(t, db), "made", "n")
		must(managerOn(t, db).Pause(t.Context(), "made"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		manager := managerOn(t, db, relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error {
			cancel()
			return errors.New("directory broke")
		}))
		got := serveHTTP(ctx, apiOn(t, manager, validTokens, httpapi.WithLogger(newLogger(&log))), "POST", target, body)
		if !strings.Contains(log.String(), `level=ERROR msg="request failed"`) || !strings.Contains(log.String(), "directory broke") {
			t.Errorf("%s: %d %s, log %q", target, got.Code, got.Body, log.String())
		}
		if target != collection && !strings.Contains(got.Body.String(), `"message":"Internal Server Error"`) {
			t.Errorf("%s: %s", target, got.Body)
		}
	}
}

// TestWrite_OutcomeUnknown: a write that may have taken effect is not reported as 503,
// which promises no effect, even if the context of the request is done.
func TestWrite_OutcomeUnknown(t *testing.T) {
	for _, deadline := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			manager := managerOn(t, lossyStore{memory.New()})
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			got := serveHTTP(ctx, apiOn(t, manager, validTokens), "POST", collection, minimal(`,"id":"r-1"`))
			if got.Code != http.StatusInternalServerError {
				t.Errorf("a create with a deadline of %v returned %d, want 500", deadline, got.Code)
			}
			if _, err := manager.Get(t.Context(), "r-1"); err != nil {
				t.Errorf("the create had no effect: %v", err)
			}
		})
	}
}

// lossyStore stores, and does not learn the outcome within a minute.
type lossyStore struct{ relayer.Store }

func (s lossyStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := s.Store.Create(ctx, rec)
	if err != nil {
		return rec, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	return rec, relayer.ErrOutcomeUnknown
}

const (
	pause  = collection + ":pause"
	resume = collection + ":resume"
)

// bulkResult is the data of a pause or a resume of several relayers.
type bulkResult struct {
	RequestID string `json:"request_id"`
	Changed   int    `json:"changed"`
	Unchanged int    `json:"unchanged"`
	Failed    []struct{ ID, Message string }
}

func (r reply) bulk(t *testing.T) bulkResult {
	t.Helper()
	if r.status != http.StatusOK {
		t.Fatalf("returned %d %s", r.status, r.body)
	}
	return decode[envelope[bulkResult]](t, r.body).Data
}

// serveTeams starts a registry with 10 relayers of payments and 5 of risk.
func serveTeams(t *testing.T, options ...httpapi.Option) *service {
	t.Helper()
	s := serve(t, options...)
	for i := range 15 {
		team := "payments"
		if i%3 == 0 {
			team = "risk"
		}
		s.create(minimal(fmt.Sprintf(`,"id":"r-%02d","labels":{"team":"%s"}`, i, team)))
	}
	return s
}

// paused returns how many relayers are paused.
func (s *service) paused() int {
	s.t.Helper()
	query := relayer.ListQuery{Selector: relayer.Selector{}.Where("paused", "true")}
	return must(s.manager.List(s.t.Context(), query))(s.t).Pagination.TotalItems
}

func TestPause_Selection(t *testing.T) {
	s := serveTeams(t)
	s.do("PATCH", collection+"/r-01", `{"paused":true}`)
	dry := s.do("POST", pause+"?label.team=payments&dry_run=true", "").bulk(t)
	if dry.Changed != 9 || dry.Unchanged != 1 || s.paused() != 1 {
		t.Errorf("a dry run returned %+v, and %d are paused", dry, s.paused())
	}
	got := s.do("POST", pause+"?label.team=payments", "", with("X-Request-Id", "request-1"), with("X-Change-Reason", "incident 42"))
	if want := `{"success":true,"data":{"request_id":"request-1","changed":9,"unchanged":1,"failed":[]}}`; got.body != want || s.paused() != 10 {
		t.Errorf("returned %d %s, and %d are paused", got.status, got.body, s.paused())
	}
	one := s.do("GET", collection+"/r-02?changes=true", "").body
	if !strings.Contains(one, `"action":"pause","reason":"incident 42","request_id":"request-1","changed":["paused"],"paused_by":{"time":`) {
		t.Errorf("a relayer is %s", one)
	}
	if resumed := s.do("POST", resume+"?all=true&paused_by=request-1", "").bulk(t); resumed.Changed != 9 || resumed.Unchanged != 6 || s.paused() != 1 {
		t.Errorf("a resume returned %+v, and %d are paused", resumed, s.paused())
	}
	if resumed := s.do("POST", resume+"?all=true", "").bulk(t); resumed.Changed != 1 || resumed.Unchanged != 14 || s.paused() != 0 {
		t.Errorf("a resume of all returned %+v, and %d are paused", resumed, s.paused())
	}
}

func TestPause_BadRequest(t *testing.T) {
	s := serveTeams(t)
	required := relayer.FieldError{Message: "at least one filter is required, or all=true"}
	for query, problem := range map[string]relayer.FieldError{
		"":              required,
		"?all=false":    required,
		"?search=":      required,
		"?all=yes":      {Field: "all", Message: "must be true or false"},
		"?paused=maybe": {Field: "paused", Message: "must be true or false"},
	} {
		for _, path := range []string{pause, resume} {
			got := s.do("POST", path+query, "")
			wantProblem(t, got, problem.Field, problem.Message)
		}
	}
	wantProblem(t, s.do("POST", resume+"?all=true&paused_by=", ""), "paused_by", "must not be empty")
	s.expect(http.StatusOK, "POST", resume+"?all=true&paused_by="+strings.Repeat("x", 128), "")
	for _, impossible := range []string{strings.Repeat("x", 129), "a%0Ab", "%ff"} {
		got := s.do("POST", resume+"?all=true&paused_by="+impossible, "")
		wantProblem(t, got, "paused_by", "must be at most 128 bytes of UTF-8 without control characters")
	}
	wantProblem(t, s.do("POST", pause+"?all=true&paused_by=request-1", ""), "paused_by", "is only possible for a resume of several relayers")
	got := s.do("POST", pause+"?all=true", "", with("If-Match", `"1"`))
	wantProblem(t, got, "", "a change of several relayers cannot have the condition of a revision")
	got = s.do("POST", pause+"?all=true", "", with("X-Change-Reason", "a", "b"))
	wantProblem(t, got, "", "the X-Change-Reason must be one line without control characters")
	if s.paused() != 0 {
		t.Errorf("%d are paused", s.paused())
	}
	got = s.do("POST", pause+"?label.team=risk&pausd=x", "")
	if !strings.Contains(got.body, `the query parameter \"pausd\" is unknown and was ignored`) || s.paused() != 5 {
		t.Errorf("an unknown parameter: %s, and %d are paused", got.body, s.paused())
	}
}

// The authorizer permits the actions, and limits them to its selector.
func TestPause_Authorizer(t *testing.T) {
	s := serveTeams(t, httpapi.WithAuthorizer(func(_ context.Context, a httpapi.Access) (httpapi.Decision, error) {
		switch a.Action {
		case relayer.ActionPause:
			return httpapi.Allow(payments), nil
		case relayer.ActionCreate:
			return allow()
		default:
			return refuse()
		}
	}))
	for i, query := range []string{"?all=true", "?label.team=risk"} {
		if got := s.do("POST", pause+query, "").bulk(t); got.Changed != []int{10, 0}[i] || s.paused() != 10 {
			t.Errorf("%s: returned %+v, and %d are paused", query, got, s.paused())
		}
	}
	wantFailure(t, s.do("POST", resume+"?all=true", ""), http.StatusForbidden, "Forbidden")
}

// A fault of one relayer is logged, and the response has only the message.
func TestPause_Failed(t *testing.T) {
	store := memory.New()
	manager := managerOn(t, store, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		switch {
		case o.Action == relayer.ActionResume && o.ID == "r-1":
			return fmt.Errorf("the queue at https://user:pw@queue.example/v2/key broke")
		case o.Action == relayer.ActionResume && o.ID == "r-2":
			return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "paused", Message: "must be true"}, {Message: "not now"}}}
		default:
			return nil
		}
	}))
	s := serveManager(t, manager, validTokens)
	for _, id := range []string{"r-1", "r-2", "r-3"} {
		s.create(minimal(`,"id":"` + id + `"`))
	}
	s.do("POST", pause+"?all=true", "")
	got := s.do("POST", resume+"?all=true", "", with("X-Request-Id", "request-1"))
	want := `{"success":true,"data":{"request_id":"request-1","changed":1,"unchanged":0,"failed":[{"id":"r-1","message":"Internal Server Error"},{"id":"r-2","message":"paused must be true; not now"}]}}`
	if got.body != want {
		t.Errorf("returned %d %s", got.status, got.body)
	}
	if log := s.log.String(); !strings.Contains(log, "queue.example") || !strings.Contains(log, "r-1") || !strings.Contains(log, "request_id=request-1") {
		t.Errorf("the log is %s", log)
	}
}
