package relayer_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// A Go client decodes what the document of each network contains, with masked URLs.
func TestEnvelope_OneRelayer(t *testing.T) {
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
		var got relayer.Envelope[relayer.Relayer]
		if err := json.Unmarshal([]byte(`{"success":true,"data":`+full.document+`}`), &got); err != nil {
			t.Fatal(err)
		}
		if !got.Success || got.Pagination != nil || !reflect.DeepEqual(got.Data, *want) {
			t.Errorf("%s: decoded %+v, want %+v", full.networkType, got, *want)
		}
	}
}

// The list has relayers of all networks, and the response members that are never sent.
func TestEnvelope_ListOfRelayers(t *testing.T) {
	text := `{"success":true,"data":[` + fullRelayers[0].document + `,` + fullRelayers[1].document + `,` + fullRelayers[2].document + `],` +
		`"pagination":{"current_page":2,"per_page":3,"total_items":6}}`
	var got relayer.Envelope[[]relayer.Relayer]
	withUnsent := strings.Replace(text, `"pagination"`, `"error":"e","metadata":{"logs":[{"level":"info","message":"m"}],"traces":[{"t":1}]},"pagination"`, 1)
	if err := json.Unmarshal([]byte(withUnsent), &got); err != nil {
		t.Fatal(err)
	}
	for i, full := range fullRelayers {
		if r := got.Data[i]; r.NetworkType != full.networkType || r.Policy.NetworkType() != full.networkType || r.ID != "full-"+string(full.networkType) {
			t.Errorf("relayer %d decoded as %+v", i, r)
		}
	}
	if want := (relayer.Pagination{CurrentPage: 2, PerPage: 3, TotalItems: 6}); !got.Success || *got.Pagination != want {
		t.Errorf("decoded %+v", got)
	}
	encoded, err := json.Marshal(got)
	if err != nil || !reflect.DeepEqual(parseTree(t, string(encoded)), parseTree(t, text)) {
		t.Errorf("encoded %s, %v\nwant %s", encoded, err, text)
	}
}

func TestEnvelope_RequiredMembers(t *testing.T) {
	for want, value := range map[string]any{
		`{"success":true,"data":[]}`: relayer.Envelope[[]relayer.Relayer]{Success: true, Data: []relayer.Relayer{}},
		`{"success":true,"data":[],"pagination":{"current_page":1,"per_page":0,"total_items":0}}`: relayer.Envelope[[]relayer.Relayer]{
			Success: true, Data: []relayer.Relayer{}, Pagination: &relayer.Pagination{CurrentPage: 1},
		},
		`{"success":false,"data":null,"message":"Unauthorized"}`: relayer.Failure{Message: "Unauthorized"},
		`{"success":false,"data":null,"message":"Bad Request","errors":[{"field":"name","message":"is required"},{"message":"the body is wrong"}]}`: relayer.Failure{
			Message: "Bad Request", Errors: []relayer.FieldError{{Field: "name", Message: "is required"}, {Message: "the body is wrong"}},
		},
	} {
		if encoded, err := json.Marshal(value); err != nil || string(encoded) != want {
			t.Errorf("encoded %s, %v, want %s", encoded, err, want)
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
