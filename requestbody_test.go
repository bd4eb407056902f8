package relayer_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// The body of a request creates the same relayer as the request.
func TestRequestBody_Create(t *testing.T) {
	requests := []relayer.CreateRequest{
		minimal("minimal"),
		{ID: "nil-policy", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s", Policy: (*relayer.EVMPolicy)(nil)},
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
		body, err := req.MarshalUnmasked()
		if err != nil {
			t.Fatal(err)
		}
		mustCreateDocument(t, byBody, string(body))
		got := mustGet(t, byBody, req.ID)
		got.Revision, got.LastChange = want.Revision, want.LastChange
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
		"amount":        {relayer.Patch{"policies": relayer.Patch{"min_balance": relayer.Ether(1)}}, `{"policies":{"min_balance":1000000000000000000}}`},
	} {
		got, err := c.patch.MarshalUnmasked()
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// A value that would be encoded with masked URLs is refused: user information would be lost
// without a mark.
func TestRequestBody_MaskedURLs(t *testing.T) {
	endpoint := relayer.RPCConfig{URL: "https://user:secret@rpc.example"}
	type endpoints []relayer.RPCConfig
	m := newManager(t)
	mustCreate(t, m, minimal("a"))
	for _, value := range []any{
		&[]relayer.RPCConfig{endpoint}, [...]relayer.RPCConfig{endpoint}, endpoints{endpoint}, []*relayer.RPCConfig{&endpoint}, []any{endpoint},
		[]map[string]any{{"url": endpoint.URL}}, []map[string]relayer.RPCURL{{"url": endpoint.URL}},
	} {
		patch := relayer.Patch{"custom_rpc_urls": value}
		_, err := patch.MarshalUnmasked()
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[0].url")
		_, err = m.Patch(t.Context(), "a", patch)
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[0].url")
	}
	for _, value := range []any{[]any{map[string]any{"url": "https://user:secret@rpc.example"}}, json.RawMessage(`[{"url":"https://user:secret@rpc.example"}]`)} {
		r, err := m.Patch(t.Context(), "a", relayer.Patch{"custom_rpc_urls": value})
		if err != nil || r.CustomRPCURLs[0].URL != endpoint.URL {
			t.Errorf("%T: %v, error %v", value, r, err)
		}
	}
}

func TestRequestBody_NotJSON(t *testing.T) {
	body, err := relayer.Patch{"name": func() {}, "custom_rpc_urls": "https://rpc.example/SECRET"}.MarshalUnmasked()
	if err == nil || body != nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("got %s, %v", body, err)
	}
}

// The encoder would replace what is not UTF-8, without an error.
func TestRequestBody_NotUTF8(t *testing.T) {
	const bad = "SECRET\xff"
	type patch = relayer.Patch
	loop := patch{}
	loop["custom_rpc_urls"] = loop // is not encoded
	kind := &relayer.StellarTokenKind{Classic: &relayer.StellarClassicAsset{Code: bad, Issuer: "i"}}
	tokens := &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a"}, {Asset: bad, Metadata: &relayer.StellarTokenMetadata{Kind: kind}}}}
	create := relayer.CreateRequest{ID: "a", Name: bad, SignerID: bad, CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example"}, {URL: bad}}, Policy: tokens}
	const tokenFields = "policies.allowed_tokens[1].asset policies.allowed_tokens[1].metadata.kind.classic.code"
	for name, test := range map[string]struct {
		request interface{ MarshalUnmasked() ([]byte, error) }
		want    string
	}{
		"create":            {create, "name signer_id custom_rpc_urls[1].url " + tokenFields},
		"member":            {patch{"name": bad, "paused": true, "notification_id": nil}, "name"},
		"URL":               {patch{"custom_rpc_urls": []relayer.RPCConfig{{URL: bad}}}, "custom_rpc_urls[0].url"},
		"URL of other type": {patch{"custom_rpc_urls": []any{map[string]string{"url": bad}}}, "custom_rpc_urls[0].url"},
		"policy":            {patch{"policies": tokens}, tokenFields},
		"policy field":      {patch{"policies": patch{"a": json.RawMessage(`1`), "whitelist_receivers": []string{"", bad}}}, "policies.whitelist_receivers[1]"},
		"member name":       {patch{"policies": patch{bad: 1, "b": []byte(bad)}}, "policies"},
		"none":              {patch{"name": "\ufffd", "policies": loop, "custom_rpc_urls": []relayer.RPCConfig{}}, ""},
	} {
		body, err := test.request.MarshalUnmasked()
		if problem, ok := errors.AsType[*relayer.ValidationError](err); ok {
			var fields []string
			for _, field := range problem.Fields {
				fields = append(fields, field.Field)
			}
			if got := strings.Join(fields, " "); got != test.want || body != nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "UTF-8") {
				t.Errorf("%s: %s, %v, want problems of %s", name, body, err, test.want)
			}
		} else if err != nil || test.want != "" {
			t.Errorf("%s: error %v, want problems of %q", name, err, test.want)
		}
	}
}
