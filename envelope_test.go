package relayer_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-relayer/relayer"
)

// A Go client decodes the document of each network, with masked URLs, and encodes it again.
func TestRelayer_JSON(t *testing.T) {
	for _, full := range fullRelayers {
		m := newFullManager(t)
		mustCreateDocument(t, m, full.request)
		want, err := m.Get(t.Context(), "full-"+string(full.networkType))
		if err != nil {
			t.Fatal(err)
		}
		for i, endpoint := range want.CustomRPCURLs {
			want.CustomRPCURLs[i].URL = relayer.RPCURL(endpoint.URL.String())
		}
		want.Revision, want.LastChange = 0, relayer.Note{}
		var got relayer.Relayer
		if err := json.Unmarshal([]byte(full.document), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("%s: decoded %+v, want %+v", full.networkType, got, *want)
		}
		encoded, err := json.Marshal(got)
		if err != nil || !reflect.DeepEqual(parseTree(t, string(encoded)), parseTree(t, full.document)) {
			t.Errorf("encoded %s, %v\nwant %s", encoded, err, full.document)
		}
	}
}

// These responses are not among those of this version.
func TestRelayer_UnmarshalJSON(t *testing.T) {
	var disabled relayer.Relayer
	text := `{"id":"a","network_type":"evm","system_disabled":true,"disabled_reason":{"type":"NonceSyncFailed","details":"d"},"policies":null,"added_later":1}`
	if err := json.Unmarshal([]byte(text), &disabled); err != nil {
		t.Fatal(err)
	}
	if want := (relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "d"}); *disabled.DisabledReason != want || !disabled.SystemDisabled {
		t.Errorf("decoded %+v", disabled)
	}
	if !reflect.DeepEqual(disabled.Policy, &relayer.EVMPolicy{}) {
		t.Errorf("policies null decoded as %#v", disabled.Policy)
	}
	for _, wrong := range []string{`{"id":"a"}`, `{"network_type":"evm","policies":5}`, `{"network_type":"evm","policies":{"min_balance":"0x5"}}`, `{"network_type":5}`, `[]`} {
		r := relayer.Relayer{ID: "before"}
		if err := json.Unmarshal([]byte(wrong), &r); err == nil || r.ID != "before" {
			t.Errorf("%s decoded as %+v, %v", wrong, r, err)
		}
	}
}
