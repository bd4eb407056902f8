package wire_test

import (
	"reflect"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/internal/wire"
	"github.com/go-relayer/relayer/store/memory"
)

// WithDefaults returns what is stored.
func TestWithDefaults(t *testing.T) {
	for _, networkType := range []relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar} {
		m, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		req := relayer.CreateRequest{ID: "a", Name: "n", Network: "x", NetworkType: networkType, SignerID: "s", CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example/key"}}}
		stored, err := m.Create(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.WithDefaults(req); err != nil || !reflect.DeepEqual(got, wire.RequestOf(stored)) {
			t.Errorf("error %v, got %v, want %v", err, got, wire.RequestOf(stored))
		}
		if req.CustomRPCURLs[0].Weight != nil {
			t.Error("the request was changed")
		}
	}
}

func TestWithDefaults_Copy(t *testing.T) {
	req := relayer.CreateRequest{
		ID: "a", Name: "n", Network: "x", NetworkType: relayer.EVM, Paused: true, SignerID: "s", NotificationID: "alerts",
		CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example/key", Weight: new(1.0)}},
		Policy:        &relayer.EVMPolicy{GasPriceCap: new(relayer.Gwei(1)), WhitelistReceivers: []string{}},
		Labels:        map[string]string{"team": "x"},
		Settings:      []byte(`{"a":1}`),
	}
	for field, value := range reflect.ValueOf(req).Fields() {
		if value.IsZero() {
			t.Fatalf("the field %s is not set", field.Name)
		}
	}
	got, err := wire.WithDefaults(req)
	if err != nil || !reflect.DeepEqual(got, req) {
		t.Errorf("error %v, got %v, want %v", err, got, req)
	}
	if got.CustomRPCURLs[0].Weight == req.CustomRPCURLs[0].Weight || got.Policy == req.Policy {
		t.Error("the copy shares memory with the request")
	}
}

func TestCheckPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policy  any
		isOther bool
	}{
		"none":           {nil, false},
		"a nil pointer":  {(*relayer.EVMPolicy)(nil), false},
		"nil unknown":    {(*relayer.UnknownPolicy)(nil), false},
		"a patch":        {patchtest.JSON(map[string]any{"min_balance": 1}), false},
		"the same type":  {new(relayer.SolanaPolicy), false},
		"another type":   {new(relayer.EVMPolicy), true},
		"a type of none": {new(relayer.UnknownPolicy), true},
	} {
		if err := wire.CheckPolicy(c.policy, relayer.Solana); (err != nil) != c.isOther {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
