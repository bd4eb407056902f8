package relayer_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/go-relayer/relayer"
)

// A parsed request creates the same relayer as its JSON.
func TestParseCreateRequest(t *testing.T) {
	for _, full := range fullRelayers {
		byDocument, byRequest := newFullManager(t), newFullManager(t)
		req, err := relayer.ParseCreateRequest([]byte(full.request))
		if err != nil {
			t.Fatal(err)
		}
		mustCreateDocument(t, byDocument, full.request)
		want, got := mustGet(t, byDocument, req.ID), mustCreate(t, byRequest, req)
		got.Revision = want.Revision
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\nwant %v\ngot  %v", req.ID, want, got)
		}
	}
}

func TestParseCreateRequest_PlainURLs(t *testing.T) {
	req, err := relayer.ParseCreateRequest([]byte(evmBody(`"custom_rpc_urls":["https://a.example/\u0041",{"url":"wss://b.example","weight":5}]`)))
	if err != nil {
		t.Fatal(err)
	}
	want := []relayer.RPCConfig{{URL: "https://a.example/A"}, {URL: "wss://b.example", Weight: new(5.0)}}
	if !reflect.DeepEqual(req.CustomRPCURLs, want) {
		t.Errorf("got %v", req.CustomRPCURLs)
	}
	if problems := problemsOf(t, evmBody(`"custom_rpc_urls":["https://a.example"]`)); problems[0].Field != "custom_rpc_urls[0]" {
		t.Errorf("CreateDocument accepts a plain URL: %v", problems)
	}
}

// Problems of the JSON and of its values are returned together.
func TestParseCreateRequest_Problems(t *testing.T) {
	for text, want := range map[string][]string{
		`[]`: {""},
		`{`:  {""},
		evmBody(`"id":"a b"`, `"custom_rpc_urls":["ftp://a","https://a.example/\ud800",7,null,{"url":"x","weight":101}]`, `"policies":{"min_balance":-1,"max_fee":1}`, `"x":1`): {
			"id", "custom_rpc_urls[0].url", "custom_rpc_urls[1]", "custom_rpc_urls[2]", "custom_rpc_urls[3]",
			"custom_rpc_urls[4].url", "custom_rpc_urls[4].weight", "policies.min_balance", "policies.max_fee", "x",
		},
	} {
		req, err := relayer.ParseCreateRequest([]byte(text))
		invalid, ok := errors.AsType[*relayer.ValidationError](err)
		if !ok || !reflect.DeepEqual(req, relayer.CreateRequest{}) {
			t.Fatalf("%s: request %v, error %v", text, req, err)
		}
		wantFields(t, invalid.Fields, want...)
	}
}
