package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// An update sends only what the function has changed, under the revision that it has read.
func TestUpdate_SendsDifference(t *testing.T) {
	tests := map[string]struct {
		change func(*relayer.Relayer)
		want   string // the body of the patch
	}{
		"name":            {func(r *relayer.Relayer) { r.Name = "new" }, `{"name":"new"}`},
		"paused":          {func(r *relayer.Relayer) { r.Paused = true }, `{"paused":true}`},
		"cleared":         {func(r *relayer.Relayer) { r.NotificationID = "" }, `{"notification_id":null}`},
		"a policy field":  {func(r *relayer.Relayer) { r.Policy.(*relayer.EVMPolicy).MinBalance = new(relayer.Ether(1000)) }, `{"policies":{"min_balance":1000000000000000000000}}`},
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
		"unknown":            {[]step{notFound("a")}, rename, nil, relayer.ErrNotFound, "GET"},
		"another revision":   {[]step{stored(t, evm("a"), 200, 7)}, rename, []relayer.WriteOption{relayer.IfRevision(6)}, relayer.ErrConflict, "GET"},
		"no revision":        {[]step{respondJSON(200, `{"success":true,"data":{"id":"a","network_type":"evm"}}`)}, rename, nil, relayer.ErrNoRevision, "GET"},
		"lost with revision": {[]step{stored(t, evm("a"), 200, 7), fail(412, "Precondition Failed")}, rename, []relayer.WriteOption{relayer.IfRevision(7)}, relayer.ErrConflict, "GET PATCH GET"},
		"another policy": {[]step{stored(t, evm("a"), 200, 7)}, func(r *relayer.Relayer) error { r.Policy = &relayer.SolanaPolicy{}; return nil },
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
