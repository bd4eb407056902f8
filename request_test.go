package relayer_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// The encoder would replace what is not UTF-8, without an error.
func TestRequestBody_NotUTF8(t *testing.T) {
	const bad = "SECRET\xff"
	kind := &relayer.StellarTokenKind{Classic: &relayer.StellarClassicAsset{Code: bad, Issuer: "i"}}
	tokens := &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a"}, {Asset: bad, Metadata: &relayer.StellarTokenMetadata{Kind: kind}}}}
	req := relayer.CreateRequest{
		ID: "a", Name: bad, Network: `\ufffd and �`, SignerID: bad, CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example"}, {URL: bad}},
		Policy: tokens, Labels: map[string]string{"a": "\\" + bad},
	}
	body, err := req.MarshalUnmasked()
	wantFields(t, fieldErrors(t, err), "name", "signer_id", "policies.allowed_tokens[1].asset", "policies.allowed_tokens[1].metadata.kind.classic.code",
		"labels.a", "custom_rpc_urls[1].url")
	if body != nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%s, %v", body, err)
	}
}

func TestCreateRequestUnmarshal_PlainURLs(t *testing.T) {
	var req relayer.CreateRequest
	text := evmBody(`"custom_rpc_urls":["https://a.example/\u0041",{"url":"wss://b.example","weight":5}]`)
	mustSucceed(t, json.Unmarshal([]byte(text), &req))
	want := []relayer.RPCConfig{{URL: "https://a.example/A"}, {URL: "wss://b.example", Weight: new(5.0)}}
	if !reflect.DeepEqual(req.CustomRPCURLs, want) {
		t.Errorf("got %v", req.CustomRPCURLs)
	}
	if problems := problemsOf(t, evmBody(`"custom_rpc_urls":["https://a.example"]`)); problems[0].Field != "custom_rpc_urls[0]" {
		t.Errorf("CreateDocument accepts a plain URL: %v", problems)
	}
}

// Problems of the JSON and of its values are returned together.
func TestCreateRequestUnmarshal_Problems(t *testing.T) {
	for text, want := range map[string][]string{
		`[]`: {""},
		`{`:  {""},
		evmBody(`"id":"a b"`, `"custom_rpc_urls":["ftp://a","https://a.example/\ud800",7,null,{"url":"x","weight":101}]`, `"policies":{"min_balance":-1,"max_fee":1}`, `"x":1`): {
			"id", "custom_rpc_urls[0].url", "custom_rpc_urls[1]", "custom_rpc_urls[2]", "custom_rpc_urls[3]",
			"custom_rpc_urls[4].url", "custom_rpc_urls[4].weight", "policies.min_balance", "policies.max_fee", "x",
		},
	} {
		before := minimal("before")
		req := before
		err := req.UnmarshalJSON([]byte(text))
		invalid, ok := errors.AsType[*relayer.ValidationError](err)
		if !ok || !reflect.DeepEqual(req, before) {
			t.Fatalf("%s: request %v, error %v", text, req, err)
		}
		wantFields(t, invalid.Fields, want...)
	}
}

// A request survives its own JSON, except for the URLs, which it masks.
func TestCreateRequest_OwnJSON(t *testing.T) {
	labeled := minimal("")
	labeled.Labels = map[string]string{"team": "a"}
	for _, req := range []relayer.CreateRequest{minimal(""), minimal("r"), labeled} {
		encoded := must(json.Marshal(req))(t)
		var got relayer.CreateRequest
		if err := json.Unmarshal(encoded, &got); err != nil || got.ID != req.ID || !reflect.DeepEqual(got.Labels, req.Labels) {
			t.Errorf("%s is decoded as %v, error %v", encoded, got, err)
		}
	}
}
