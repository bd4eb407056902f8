package relayer_test

import (
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
		got.Revision, got.LastChange, got.PausedBy = want.Revision, want.LastChange, want.PausedBy
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\nwant %v\ngot  %v", req.ID, want, got)
		}
	}
}

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
