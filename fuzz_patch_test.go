package relayer_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// FuzzPatchDocument patches one relayer of each network type with anything: it
// is refused by fields and nothing changes, or it is carried out, the same patch
// again changes nothing, and what cannot be patched stays.
func FuzzPatchDocument(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"name":"m","paused":true}`, `{"name":null}`, `{"policies":null}`, `{"policies":{"gas_price_cap":1e21,"min_balance":null}}`,
		`{"custom_rpc_urls":null}`, `{"custom_rpc_urls":[{"url":"https://rpc.example/***"}]}`, `{"custom_rpc_urls":[{"url":"https://u:p@h/k","weight":0}]}`,
		`{"notification_id":"x"}`, `{"notification_id":null}`, `{"id":"x"}`, `{"system_disabled":true}`, `{"disabled_reason":null}`,
		`{"policies":{"swap_config":{"strategy":"noop","jupiter_swap_options":{"priority_level":"high"}}}}`,
		`{"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":{"contract":{"contract_id":"c"}}}}]}}`,
		`{"policies":{"allowed_tokens":[{"mint":"a","symbol":null}]},"policies":{}}`, `{"a":{"b":null}}`, `[]`, `null`, `{"name":"\ud800"}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		m, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		for _, networkType := range []relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar} {
			before, err := m.Create(t.Context(), relayer.CreateRequest{
				ID: string(networkType), Name: "n", Network: "x", NetworkType: networkType, SignerID: "s",
				CustomRPCURLs: []relayer.RPCConfig{{URL: "https://user:pw@rpc.example/v2/key"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			patched, err := m.PatchDocument(t.Context(), before.ID, patch)
			after := mustGet(t, m, before.ID)
			if err != nil {
				var invalid *relayer.ValidationError
				if !errors.As(err, &invalid) || len(invalid.Fields) == 0 {
					t.Fatalf("%s: %v", patch, err)
				}
				if !reflect.DeepEqual(after, before) {
					t.Fatalf("%s was refused and changed %v to %v", patch, before, after)
				}
				continue
			}
			if after.ID != before.ID || after.Network != before.Network || after.NetworkType != before.NetworkType || after.SignerID != before.SignerID ||
				after.Address != before.Address || after.SystemDisabled || after.DisabledReason != nil {
				t.Fatalf("%s changed %v to %v", patch, before, after)
			}
			again, err := m.PatchDocument(t.Context(), before.ID, patch)
			if err != nil || again.Revision != patched.Revision || string(again.JSON) != string(patched.JSON) {
				t.Fatalf("%s once gave %s, and again %s, %v", patch, patched.JSON, again.JSON, err)
			}
			var shown relayer.Relayer
			if err := json.Unmarshal(patched.JSON, &shown); err != nil {
				t.Fatalf("%s gave %s: %v", patch, patched.JSON, err)
			}
		}
	})
}
