package relayer_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// The body of a request creates the same relayer as the request.
func TestRequestBody_Create(t *testing.T) {
	requests := []relayer.CreateRequest{
		minimal("minimal"),
		{ID: "nil-policy", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s", Policies: (*relayer.EVMPolicy)(nil)},
		{ID: "no-urls", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s", CustomRPCURLs: []relayer.RPCConfig{}},
	}
	source := newFullManager(t)
	for _, full := range fullRelayers {
		document := mustCreateDocument(t, source, full.request)
		requests = append(requests, requestFor(mustGet(t, source, document.ID)))
	}
	for _, req := range requests {
		direct, byBody := newFullManager(t), newFullManager(t)
		want := mustCreate(t, direct, req)
		body, err := req.RequestBody()
		if err != nil {
			t.Fatal(err)
		}
		mustCreateDocument(t, byBody, string(body))
		got := mustGet(t, byBody, req.ID)
		got.Revision = want.Revision
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\nwant %v\ngot  %v", req.ID, want, got)
		}
	}
}

func TestRequestBody_Patch(t *testing.T) {
	const secret = "https://rpc.example/v2/SECRET"
	for name, c := range map[string]struct {
		patch relayer.Patch
		want  string
	}{
		"nil":           {nil, `{}`},
		"unset":         {relayer.Patch{}, `{}`},
		"null":          {relayer.Patch{"notification_id": nil, "custom_rpc_urls": nil}, `{"custom_rpc_urls":null,"notification_id":null}`},
		"values":        {relayer.Patch{"name": "n", "paused": false}, `{"name":"n","paused":false}`},
		"full URL":      {relayer.Patch{"custom_rpc_urls": []relayer.RPCConfig{{URL: secret, Weight: new(5.0)}}}, `{"custom_rpc_urls":[{"url":"` + secret + `","weight":5}]}`},
		"no URL":        {relayer.Patch{"custom_rpc_urls": []relayer.RPCConfig{}}, `{"custom_rpc_urls":[]}`},
		"policy":        {relayer.Patch{"policies": &relayer.StellarPolicy{MaxFee: new(int32(7))}}, `{"policies":{"max_fee":7}}`},
		"policy fields": {relayer.Patch{"policies": relayer.Patch{"max_fee": nil, "swap_config": relayer.Patch{"cron_schedule": nil}}}, `{"policies":{"max_fee":null,"swap_config":{"cron_schedule":null}}}`},
		"amount":        {relayer.Patch{"policies": relayer.Patch{"min_balance": relayer.NewAmount(1e18)}}, `{"policies":{"min_balance":1000000000000000000}}`},
	} {
		got, err := c.patch.RequestBody()
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

func TestRequestBody_NotJSON(t *testing.T) {
	body, err := relayer.Patch{"name": func() {}, "custom_rpc_urls": "https://rpc.example/SECRET"}.RequestBody()
	if err == nil || body != nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestPatch_MasksItself(t *testing.T) {
	patch := relayer.Patch{"name": "n", "custom_rpc_urls": []map[string]any{{"url": "https://rpc.example/SECRET"}}}
	encoded, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("patch", "patch", patch)
	for _, text := range []string{string(encoded), fmt.Sprint(patch), fmt.Sprintf("%+v %#v %s %d", patch, patch, patch, patch), log.String()} {
		if strings.Contains(text, "SECRET") || !strings.Contains(text, "***") {
			t.Errorf("printed %s", text)
		}
	}
}
