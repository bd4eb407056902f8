package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

func TestCreate_GeneratedID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		missing := func(r *http.Request) (*http.Response, error) {
			id := strings.Split(r.URL.Path, "/")[5]
			ids = append(ids, id)
			return notFound(id)(r)
		}
		c, s := scripted(t, nil, reset, missing, missing, fail(400, "Bad Request"), missing, missing)
		if _, err := c.Create(t.Context(), evm("")); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		for _, request := range s.seen {
			if request.method != "POST" {
				continue
			}
			var body struct{ ID string }
			if err := json.Unmarshal([]byte(request.body), &body); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, body.ID)
		}
		for _, id := range ids {
			if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || id != ids[0] {
				t.Errorf("the IDs are %q, want one UUIDv7", ids)
			}
		}
	})
}

// A rejection by the server also applies to the lost attempt before it; that of a proxy does not.
func TestWrite_RejectedAfterLoss(t *testing.T) {
	absent, current, invalid := notFound("a"), stored(t, evm("a"), 200, 5), fail(400, "Bad Request")
	none := history("[]")
	create := func(ctx context.Context, c *client.Client) error { return second(c.Create(ctx, evm("a"))) }
	pause := func(ctx context.Context, c *client.Client) error { return second(c.Pause(ctx, "a")) }
	pauseIf := func(ctx context.Context, c *client.Client) error {
		return second(c.Pause(ctx, "a", relayer.IfRevision(5)))
	}
	tests := map[string]struct {
		call  func(context.Context, *client.Client) error
		steps []step
		want  error
		sent  string
	}{
		"invalid":                 {create, []step{absent, absent, invalid, absent, absent}, relayer.ErrInvalid, "POST GET GET POST GET GET"},
		"invalid patch":           {pause, []step{current, none, invalid, current, none}, relayer.ErrInvalid, "PATCH GET GET PATCH GET GET"},
		"forbidden":               {pauseIf, []step{current, none, fail(403, "Forbidden"), current, none}, client.ErrForbidden, "PATCH GET GET PATCH GET GET"},
		"403 of a proxy":          {pauseIf, []step{current, none, html(403), current, none}, relayer.ErrOutcomeUnknown, "PATCH GET GET PATCH GET GET"},
		"unreadable":              {pause, []step{fail(401, "Unauthorized")}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"unreadable history":      {pause, []step{current, fail(403, "Forbidden")}, relayer.ErrOutcomeUnknown, "PATCH GET GET"},
		"a page with 200":         {pause, []step{html(200), current, html(200), none, current}, nil, "PATCH GET GET GET GET PATCH"},
		"busy reads":              {pause, []step{busy, current, busy, none, current}, nil, "PATCH GET GET GET GET PATCH"},
		"another writer's change": {pauseIf, []step{stored(t, evm("a"), 200, 6), none}, relayer.ErrConflict, "PATCH GET GET"},
		"a history without an end": {pauseIf, []step{stored(t, evm("a"), 200, 9), history(`[{"revision":8,"request_id":"x"}],"next":"8"`), history(`[{"revision":5}],"next":"5"`)},
			relayer.ErrConflict, "PATCH GET GET GET"}, // it ends at the revision of the condition
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			c, s := scripted(t, nil, append([]step{reset}, test.steps...)...)
			err := test.call(t.Context(), c)
			checkUnknown(t, err)
			if !errors.Is(err, test.want) || s.methods() != test.sent {
				t.Errorf("%s: sent %s, want %s, error %v, want %v", name, s.methods(), test.sent, err, test.want)
			}
		})
	}
}

// A busy server does not show that a lost attempt will have no effect.
func TestWrite_BusyAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		c, _ := scripted(t, nil, func(r *http.Request) (*http.Response, error) {
			switch {
			case strings.Contains(r.URL.Path, "/history"):
				return history("[]")(r)
			case r.Method == http.MethodGet:
				return stored(t, evm("a"), 200, 5)(r)
			}
			if writes++; writes == 1 {
				return reset(r)
			}
			return busy(r)
		})
		err := second(c.Pause(t.Context(), "a", relayer.IfRevision(5)))
		if checkUnknown(t, err); !errors.Is(err, relayer.ErrOutcomeUnknown) || writes != 5 {
			t.Errorf("error %v after %d writes", err, writes)
		}
	})
}

// history responds with a page of a history, as a server that gets the request IDs.
func history(data string) step {
	return func(r *http.Request) (*http.Response, error) {
		return respondJSON(200, `{"success":true,"data":`+data+`}`, "X-Request-Id", r.Header.Get("X-Request-Id"))(r)
	}
}

func TestWrite_CanceledAfterSend(t *testing.T) {
	inResponse := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return truncated(200)(r)
	}
	for name, step := range map[string]step{"before the response": blocked, "in the response": inResponse} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			c, s := scripted(t, nil, step)
			err := c.Delete(ctx, "a")
			if !errors.Is(err, relayer.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || s.methods() != "DELETE" {
				t.Errorf("%s: sent %s, error %v", name, s.methods(), err)
			}
		})
	}
}

// A write that never gets through is bounded, and reported as unknown.
func TestWrite_UnknownOutcomeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, nil)
		s.steps = []step{func(r *http.Request) (*http.Response, error) {
			if r.Method == "GET" {
				return notFound("a")(r)
			}
			return reset(r)
		}}
		start := time.Now()
		_, err := c.Create(t.Context(), evm("a"))
		checkUnknown(t, err)
		if !errors.Is(err, relayer.ErrOutcomeUnknown) || len(s.seen) != 15 || time.Since(start) > 30*time.Second {
			t.Errorf("%d requests in %s, error %v, want 5 creates, each followed by two reads", len(s.seen), time.Since(start), err)
		}
	})
}

func TestIfRevision_IfMatch(t *testing.T) {
	revisions := relayer.IfRevision
	tests := []struct {
		options []relayer.WriteOption
		want    string
	}{
		{nil, ""},
		{[]relayer.WriteOption{revisions(5)}, `"5"`},
		{[]relayer.WriteOption{revisions(5, 18446744073709551615)}, `"5", "18446744073709551615"`},
		{[]relayer.WriteOption{revisions(5, 6, 5), revisions(6, 7, 5)}, `"5", "6"`},
	}
	for _, test := range tests {
		c, s := scripted(t, nil, stored(t, evm("a"), 200, 9))
		must(c.Pause(t.Context(), "a", test.options...))(t)
		if got := s.seen[0].header.Get("If-Match"); got != test.want {
			t.Errorf("If-Match is %s, want %s", got, test.want)
		}
	}
	// A change that no revision permits is sent, because the relayer may not exist.
	for _, options := range [][]relayer.WriteOption{{revisions()}, {revisions(5), revisions(6)}} {
		c, s := scripted(t, nil, fail(412, "Precondition Failed"))
		pauseErr, deleteErr := second(c.Pause(t.Context(), "a", options...)), c.Delete(t.Context(), "a", options...)
		for _, err := range []error{pauseErr, deleteErr} { // a rejection proves that the write had no effect
			if got := s.seen[0].header.Get("If-Match"); !errors.Is(err, relayer.ErrConflict) || errors.Is(err, relayer.ErrOutcomeUnknown) || got != `"0"` {
				t.Errorf("If-Match is %s, error %v", got, err)
			}
		}
	}
	for _, options := range [][]relayer.WriteOption{{revisions(0)}, {revisions(0, 5)}, {revisions(5), revisions(6), revisions(0)}} {
		c, s := scripted(t, nil, stored(t, evm("a"), 200, 9))
		_, err := c.Resume(t.Context(), "a", options...)
		if deleteErr := c.Delete(t.Context(), "a", options...); !errors.Is(err, relayer.ErrNoRevision) || !errors.Is(deleteErr, relayer.ErrNoRevision) || len(s.seen) != 0 {
			t.Errorf("errors %v and %v, %d requests", err, deleteErr, len(s.seen))
		}
	}
}

// An update sends only what the function has changed, under the revision that it has read.
func TestUpdate_SendsDifference(t *testing.T) {
	tests := map[string]struct {
		change func(*relayer.Relayer)
		want   string // the body of the patch
	}{
		"name":            {func(r *relayer.Relayer) { r.Name = "new" }, `{"name":"new"}`},
		"paused":          {func(r *relayer.Relayer) { r.Paused = true }, `{"paused":true}`},
		"cleared":         {func(r *relayer.Relayer) { r.NotificationID = "" }, `{"notification_id":null}`},
		"a policy field":  {func(r *relayer.Relayer) { r.Policy.(*relayer.EVMPolicy).MinBalance = new(relayer.Ether(1000)) }, `{"policies":{"min_balance":"1000000000000000000000"}}`},
		"a cleared field": {func(r *relayer.Relayer) { r.Policy.(*relayer.EVMPolicy).GasPriceCap = nil }, `{"policies":{"gas_price_cap":null}}`},
		"a list": {func(r *relayer.Relayer) { r.Policy.(*relayer.EVMPolicy).WhitelistReceivers[0] = "0x2" },
			`{"policies":{"whitelist_receivers":["0x2"]}}`},
		"no policy":   {func(r *relayer.Relayer) { r.Policy = nil }, `{"policies":null}`},
		"labels":      {func(r *relayer.Relayer) { delete(r.Labels, "team"); r.Labels["owner"] = "ci" }, `{"labels":{"owner":"ci","team":null}}`},
		"no labels":   {func(r *relayer.Relayer) { r.Labels = nil }, `{"labels":null}`},
		"settings":    {func(r *relayer.Relayer) { r.Settings = []byte(`{"a":{"b":2},"d":[null]}`) }, `{"settings":{"a":{"b":2,"c":null},"d":[null],"e":null}}`},
		"no settings": {func(r *relayer.Relayer) { r.Settings = nil }, `{"settings":null}`},
		"URLs": {func(r *relayer.Relayer) {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://other.example/key", Weight: new(5.0)}}
		}, `{"custom_rpc_urls":[{"url":"https://other.example/key","weight":5}]}`},
		"headers": {func(r *relayer.Relayer) {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://other.example/key", Headers: map[string]relayer.Secret{"X-Key": "value"}}}
		}, `{"custom_rpc_urls":[{"url":"https://other.example/key","headers":{"X-Key":"value"}}]}`},
		"no URLs":       {func(r *relayer.Relayer) { r.CustomRPCURLs = nil }, `{"custom_rpc_urls":null}`},
		"a fixed field": {func(r *relayer.Relayer) { r.Network = "other" }, `{"network":"other"}`},
		"disabled": {func(r *relayer.Relayer) {
			r.SystemDisabled, r.DisabledReason = true, &relayer.DisabledReason{Type: "x"}
		},
			`{"disabled_reason":{"details":"","type":"x"},"system_disabled":true}`},
	}
	req := evm("a")
	req.Labels, req.Settings = map[string]string{"team": "payments"}, []byte(`{"a":{"b":1,"c":1},"e":{}}`)
	for name, test := range tests {
		c, s := scripted(t, nil, stored(t, req, 200, 7), stored(t, req, 200, 8))
		_, err := c.Update(t.Context(), "a", func(r *relayer.Relayer) error { test.change(r); return nil })
		if err != nil || s.methods() != "GET PATCH" || !isSameJSON(s.seen[1].body, test.want) || s.seen[1].header.Get("If-Match") != `"7"` {
			t.Errorf("%s: %s, body %s, want %s, error %v", name, s.methods(), s.seen[len(s.seen)-1].body, test.want, err)
		}
	}
}

func isSameJSON(a, b string) bool {
	var left, right any
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil && reflect.DeepEqual(left, right)
}

func TestUpdate_Nothing(t *testing.T) {
	c, s := scripted(t, nil, stored(t, evm("a"), 200, 7))
	r, err := c.Update(t.Context(), "a", func(*relayer.Relayer) error { return nil })
	if err != nil || r.Revision != 7 || r.LastChange.Revision != 7 || s.methods() != "GET" {
		t.Errorf("updated %v by %s, error %v", r, s.methods(), err)
	}
}

// The revision and the last change are not the function's to set.
func TestUpdate_OtherRevision(t *testing.T) {
	for _, name := range []string{"a", "new"} {
		c, s := scripted(t, nil, stored(t, evm("a"), 200, 7))
		r, err := c.Update(t.Context(), "a", func(r *relayer.Relayer) error {
			r.Name, r.Revision, r.LastChange = "name of "+name, 3, relayer.ChangeInfo{}
			return nil
		})
		if err != nil || r.Revision != 7 || r.LastChange.Revision != 7 {
			t.Errorf("updated %+v, error %v", r, err)
		}
		if last := s.seen[len(s.seen)-1]; last.method == http.MethodPatch && last.header.Get("If-Match") != `"7"` {
			t.Errorf("the condition is %q", last.header.Get("If-Match"))
		}
	}
}

func TestUpdate_Errors(t *testing.T) {
	cause := errors.New("no")
	rename := func(r *relayer.Relayer) error { r.Name = "new"; return nil }
	tests := map[string]struct {
		steps   []step
		change  func(*relayer.Relayer) error
		options []relayer.WriteOption
		want    error
		methods string
	}{
		"of the function":    {[]step{stored(t, evm("a"), 200, 7)}, func(*relayer.Relayer) error { return cause }, nil, cause, "GET"},
		"its own conflict":   {[]step{stored(t, evm("a"), 200, 7)}, func(*relayer.Relayer) error { return relayer.ErrConflict }, nil, relayer.ErrConflict, "GET"},
		"unknown":            {[]step{notFound("a")}, rename, nil, relayer.ErrNotFound, "GET"},
		"another revision":   {[]step{stored(t, evm("a"), 200, 7)}, rename, []relayer.WriteOption{relayer.IfRevision(6)}, relayer.ErrConflict, "GET"},
		"no revision":        {[]step{respondJSON(200, `{"success":true,"data":{"id":"a","network_type":"evm"}}`)}, rename, nil, relayer.ErrNoRevision, "GET"},
		"lost with revision": {[]step{stored(t, evm("a"), 200, 7), fail(412, "Precondition Failed")}, rename, []relayer.WriteOption{relayer.IfRevision(7)}, relayer.ErrConflict, "GET PATCH GET"},
		"another policy": {[]step{stored(t, evm("a"), 200, 7)}, func(r *relayer.Relayer) error { r.Policy = &relayer.SolanaPolicy{}; return nil },
			nil, relayer.ErrInvalid, "GET"},
		"a nil pointer of another policy": {[]step{stored(t, evm("a"), 200, 7)}, func(r *relayer.Relayer) error { r.Policy = (*relayer.SolanaPolicy)(nil); return nil },
			nil, relayer.ErrInvalid, "GET"},
		"a name twice": {[]step{stored(t, evm("a"), 200, 7)}, func(r *relayer.Relayer) error { r.Settings = []byte(`{"a":1,"\u0061":2}`); return nil },
			nil, relayer.ErrInvalid, "GET"},
	}
	for name, test := range tests {
		c, s := scripted(t, nil, test.steps...)
		if r, err := c.Update(t.Context(), "a", test.change, test.options...); !errors.Is(err, test.want) || r != nil || s.methods() != test.methods {
			t.Errorf("%s: updated %v by %s, error %v", name, r, s.methods(), err)
		}
	}
}

// An update that keeps losing ends with the conflict.
func TestUpdate_Contention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gets atomic.Int32
		c, _ := scripted(t, nil, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				gets.Add(1)
				return stored(t, evm("a"), 200, uint64(gets.Load()))(r)
			}
			return fail(412, "Precondition Failed")(r)
		})
		_, err := c.Update(t.Context(), "a", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(r.Revision); return nil })
		if !errors.Is(err, relayer.ErrConflict) || gets.Load() < 3 || gets.Load() > 200 {
			t.Errorf("error %v after %d reads", err, gets.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err = c.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(r.Revision); return nil })
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, relayer.ErrConflict) || time.Since(start) > time.Second {
			t.Errorf("error %v after %s", err, time.Since(start))
		}
		canceled, stop := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, stop)
		if _, err := c.Update(canceled, "a", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(r.Revision); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: error %v", err)
		}
	})
}

// The full URLs of a client with WithFullRPCURLs can be changed one by one.
func TestUpdate_FullRPCURLs(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	weigh := func(r *relayer.Relayer) error { *r.CustomRPCURLs[0].Weight = 5; return nil }
	if _, err := serveEngine(t, m).Update(t.Context(), "a", weigh); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("masked URLs: error %v", err)
	}
	if _, err := serveEngine(t, m, client.WithFullRPCURLs()).Update(t.Context(), "a", weigh); err != nil {
		t.Error(err)
	}
	r, err := m.Get(t.Context(), "a")
	if err != nil || r.CustomRPCURLs[0].URL.Unmasked() != "https://rpc.example/v2/secret-key" || *r.CustomRPCURLs[0].Weight != 5 {
		t.Errorf("the server has %v, error %v", r, err)
	}
}

func TestDryRun(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	before := must(m.List(t.Context(), relayer.ListQuery{}))(t).Position
	runs := map[string]write{
		"update of nothing": {func(c call) (*relayer.Relayer, error) {
			return c.Update(c.ctx, "a", func(*relayer.Relayer) error { return nil }, c.options...)
		}, false, ""},
		"resume of nothing": {func(c call) (*relayer.Relayer, error) { return c.Resume(c.ctx, "a", c.options...) }, false, ""},
		"enable of nothing": {func(c call) (*relayer.Relayer, error) { return c.Enable(c.ctx, "a", c.options...) }, false, ""},
	}
	maps.Copy(runs, writes)
	for name, write := range runs {
		for _, registry := range []relayer.Registry{m, serveEngine(t, m)} {
			r, err := write.run(call{Registry: registry, ctx: t.Context(), options: []relayer.WriteOption{relayer.DryRun()}})
			if err != nil {
				t.Errorf("%T: %s: error %v", registry, name, err)
			}
			if want := (relayer.ChangeInfo{Changed: strings.Fields(write.changed)}); r != nil && !reflect.DeepEqual(r.LastChange, want) {
				t.Errorf("%T: %s: the last change is %#v, want %#v", registry, name, r.LastChange, want)
			}
			if r != nil && (r.Revision == 0) != strings.HasPrefix(name, "create") {
				t.Errorf("%T: %s: revision %d", registry, name, r.Revision)
			}
		}
	}
	if after := must(m.List(t.Context(), relayer.ListQuery{}))(t).Position; after != before {
		t.Errorf("the position is %s, want %s", after, before)
	}
}

// A dry run fails as the write would.
func TestDryRun_Errors(t *testing.T) {
	m := newManager(t)
	must(m.Create(t.Context(), evm("a")))(t)
	c := serve(t, m)
	dry := relayer.DryRun()
	_, exists := c.Create(t.Context(), evm("a"), dry)
	_, invalid := c.Patch(t.Context(), "a", []byte(`{"name":""}`), dry)
	_, unknown := c.Pause(t.Context(), "unknown", dry)
	conflict := c.Delete(t.Context(), "a", dry, relayer.IfRevision(99))
	_, disable := c.Disable(t.Context(), "a", relayer.DisabledReason{Type: "x"}, dry) // not enabled by the host
	for want, err := range map[error]error{
		relayer.ErrExists: exists, relayer.ErrInvalid: invalid, relayer.ErrNotFound: unknown, relayer.ErrConflict: conflict, errors.ErrUnsupported: disable,
	} {
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// Only a response of the API shows that the server has dry runs.
func TestDryRun_Proxy(t *testing.T) {
	for name, probe := range map[string]step{
		"404": html(404), "403": html(403), "400": html(400), "200": html(200), "unknown": fail(404, "Not Found"), "redirect": respond(302, "", "", "Location", "/login"),
	} {
		c, s := scripted(t, once, probe, stored(t, evm("a"), 200, 1))
		if err := c.Delete(t.Context(), "a", relayer.DryRun()); err == nil || s.methods() != "GET" {
			t.Errorf("%s: sent %s, error %v", name, s.methods(), err)
		}
	}
	c, s := scripted(t, once, respondJSON(200, `{"success":true,"data":{}}`), stored(t, evm("a"), 200, 1), stored(t, evm("a"), 200, 1))
	for range 2 {
		if _, err := c.Pause(t.Context(), "a", relayer.DryRun()); err != nil {
			t.Error(err)
		}
	}
	if s.methods() != "GET PATCH PATCH" || s.seen[1].path != "/pre%20fix/api/v1/relayers/a?changes=true&dry_run=true" {
		t.Errorf("sent %s, %s", s.methods(), s.seen[1].path)
	}
}

// bulkOf returns a registry with the relayers r-0 to r-9, of which the even ones are of the network even.
func bulkOf(t *testing.T, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m := newManager(t, options...)
	for i := range 10 {
		req := relayer.CreateRequest{ID: fmt.Sprint("r-", i), Name: "n", Network: []string{"even", "odd"}[i%2], NetworkType: relayer.EVM, SignerID: "s"}
		must(m.Create(t.Context(), req))(t)
	}
	return m
}

// A client does what a Manager does.
func TestPauseAll(t *testing.T) {
	m := bulkOf(t)
	c := serve(t, m)
	even, ctx := relayer.Selector{}.Where("network", "even"), t.Context()
	wantBulk := func(result relayer.BulkResult, err error, changed, unchanged, paused int) {
		t.Helper()
		page, listErr := m.List(ctx, relayer.ListQuery{Selector: relayer.Selector{}.Where("paused", "true")})
		if err != nil || listErr != nil || result.Changed != changed || result.Unchanged != unchanged || result.Failed != nil || page.Pagination.TotalItems != paused {
			t.Errorf("the result is %+v, error %v, and %d are paused", result, err, page.Pagination.TotalItems)
		}
	}
	dry, err := c.PauseAll(ctx, even, relayer.DryRun())
	wantBulk(dry, err, 5, 0, 0)
	none, err := c.PauseAll(ctx, relayer.Selector{}.Where("id"))
	wantBulk(none, err, 0, 0, 0)
	paused, err := c.PauseAll(ctx, even, relayer.Reason("incident 42"))
	wantBulk(paused, err, 5, 0, 5)
	r, err := c.Get(ctx, "r-0")
	if err != nil || r.LastChange.PausedBy.RequestID != paused.RequestID || r.LastChange.PausedBy.Reason != "incident 42" {
		t.Errorf("paused by %+v, error %v", r.LastChange.PausedBy, err)
	}
	all, err := c.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers())
	wantBulk(all, err, 5, 5, 10)
	resumed, err := c.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.PausedBy(paused.RequestID))
	wantBulk(resumed, err, 5, 5, 5)
}

func TestPauseAll_Errors(t *testing.T) {
	m := bulkOf(t, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionResume && o.ID == "r-3" {
			return relayer.Refuse("the nonce is not synchronized")
		}
		return nil
	}))
	c, ctx := serve(t, m), t.Context()
	for name, err := range map[string]error{
		"nothing selected": second(c.PauseAll(ctx, relayer.Selector{})),
		"invalid selector": second(c.PauseAll(ctx, relayer.Selector{}.Where("x", "y"))),
		"a revision":       second(c.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.IfRevision(1))),
		"no request":       second(c.ResumeAll(ctx, relayer.Selector{}, relayer.PausedBy(""))),
	} {
		if !errors.Is(err, relayer.ErrInvalid) || !strings.HasPrefix(err.Error(), "client: pause: ") && !strings.HasPrefix(err.Error(), "client: resume") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(c.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers()))(t)
	resumed, err := c.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers())
	if err != nil || resumed.Changed != 9 || fmt.Sprint(resumed.Failed) != "map[r-3:the nonce is not synchronized]" {
		t.Errorf("the result is %+v, error %v", resumed, err)
	}
	older, _ := scripted(t, nil, fail(404, "Not Found"))
	if _, err := older.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an older server: %v", err)
	}
}

const bulkDone = `{"success":true,"data":{"request_id":"id","changed":3,"unchanged":2,"failed":[]}}`

// All attempts have one request ID. The error says whether relayers may have been changed.
func TestPauseAll_LostResponse(t *testing.T) {
	unavailable := fail(http.StatusServiceUnavailable, "Service Unavailable", "Retry-After", "1")
	for name, c := range map[string]struct {
		steps    []step
		attempts int
		want     error
	}{
		"lost once":               {[]step{reset, respondJSON(200, bulkDone)}, 2, nil},
		"truncated once":          {[]step{truncated(200), respondJSON(200, bulkDone)}, 2, nil},
		"unavailable once":        {[]step{unavailable, respondJSON(200, bulkDone)}, 2, nil},
		"a proxy without server":  {[]step{html(502), respondJSON(200, bulkDone)}, 2, nil},
		"data that is no result":  {[]step{respondJSON(200, `{"success":true,"data":{}}`)}, 1, relayer.ErrOutcomeUnknown},
		"always lost":             {[]step{reset}, 5, relayer.ErrOutcomeUnknown},
		"a fault":                 {[]step{fail(500, "Internal Server Error")}, 1, relayer.ErrOutcomeUnknown},
		"always unavailable":      {[]step{unavailable}, 5, relayer.ErrUnavailable},
		"lost, then unavailable":  {[]step{reset, unavailable}, 5, relayer.ErrOutcomeUnknown},
		"lost, then not accepted": {[]step{reset, fail(401, "Unauthorized")}, 2, relayer.ErrOutcomeUnknown},
		"not accepted":            {[]step{fail(401, "Unauthorized")}, 1, client.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, want := c, relayer.BulkResult{RequestID: "id", Changed: 3, Unchanged: 2}
				registry, sent := scripted(t, nil, c.steps...)
				result, err := registry.PauseAll(t.Context(), relayer.Selector{}.Where("network", "a"), relayer.Reason("why"))
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err == nil && !reflect.DeepEqual(result, want) {
					t.Errorf("the result is %+v, error %v", result, err)
				}
				if c.want == relayer.ErrOutcomeUnknown && result.RequestID != sent.seen[0].header.Get("X-Request-Id") {
					t.Errorf("the result has the request %q", result.RequestID)
				}
				if c.want == relayer.ErrOutcomeUnknown && errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("the error promises that nothing was changed: %v", err)
				}
				if len(sent.seen) != c.attempts {
					t.Errorf("%d attempts, want %d", len(sent.seen), c.attempts)
				}
				for _, request := range sent.seen {
					id := request.header.Get("X-Request-Id")
					if request.path != "/pre%20fix/api/v1/relayers:pause?network=a" || id == "" || id != sent.seen[0].header.Get("X-Request-Id") || request.header.Get("X-Change-Reason") != "why" {
						t.Errorf("sent %+v", request)
					}
				}
			})
		})
	}
}
