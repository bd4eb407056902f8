package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
)

func TestExport_Format(t *testing.T) {
	m := newManager(t)
	most := must(relayer.ParseAmount("115792089237316195423570985008687907853269984665640564039457584007913129639935"))(t)
	first := withURLs("z", "https://a.example/"+secret+"?a=1&b=<>")
	first.Name, first.Policy = "<&>", &relayer.EVMPolicy{MinBalance: &most}
	create(t, m, first, minimal("a"))
	const want = `{
  "relayers": [
    {
      "id": "z",
      "name": "<&>",
      "network": "sepolia",
      "network_type": "evm",
      "paused": false,
      "signer_id": "s",
      "custom_rpc_urls": [
        {
          "url": "https://a.example/***",
          "weight": 100
        }
      ],
      "policies": {
        "min_balance": 115792089237316195423570985008687907853269984665640564039457584007913129639935
      }
    },
    {
      "id": "a",
      "name": "n",
      "network": "sepolia",
      "network_type": "evm",
      "paused": false,
      "signer_id": "s",
      "policies": {}
    }
  ]
}
`
	masked, err := plan.Export(t.Context(), m, relayer.Selector{})
	if err != nil || string(masked) != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, masked, want)
	}
	if empty, err := plan.Export(t.Context(), newManager(t), relayer.Selector{}); err != nil || string(empty) != "{\n  \"relayers\": []\n}\n" {
		t.Errorf("error %v, got %s", err, empty)
	}
}

func TestExport_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if file, err := plan.Export(ctx, newManager(t), relayer.Selector{}); !errors.Is(err, context.Canceled) || file != nil {
		t.Errorf("file %s, error %v", file, err)
	}
	if _, err := plan.New(ctx, newManager(t), nil, plan.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A relayer that a newer version has stored would make the whole file invalid.
func TestExport_NewerRelayer(t *testing.T) {
	for document, want := range map[string]string{
		`"network_type":"fictional","policies":{"max_sats":1}`:                           "network_type must be one of evm,",
		`"network_type":"solana","policies":{"swap_config":{"strategy":"later-swap"}}`:   "policies.swap_config.strategy must be one of",
		`"network_type":"solana","policies":{"fee_payment_strategy":"user","later":"x"}`: "",
	} {
		store := memory.New()
		m := must(relayer.New(store))(t)
		record := relayer.Record{ID: "a", Document: []byte(`{"id":"a","name":"n","network":"x","signer_id":"s",` + document + `}`)}
		must(store.Create(t.Context(), record))(t)
		file, err := plan.Export(t.Context(), m, relayer.Selector{})
		if want != "" {
			if !errors.Is(err, relayer.ErrInvalid) || !strings.Contains(err.Error(), "the relayer a: ") || !strings.Contains(err.Error(), want) || file != nil {
				t.Errorf("%s: file %s, error %v", document, file, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		expectNoChanges(t, m, parse(t, string(file)).Relayers)
	}
}

func expectNoChanges(t *testing.T, registry relayer.Registry, relayers []relayer.CreateRequest) {
	t.Helper()
	if p := newPlan(t, registry, relayers, plan.Options{Prune: true}); p.HasChanges() || p.Err() != nil {
		t.Errorf("changes:\n%s", p)
	}
}

// An export or a plan without a damaged relayer would remove it.
func TestExport_DamagedRecord(t *testing.T) {
	store := memory.New()
	must(store.Create(t.Context(), relayer.Record{ID: "a", Document: []byte("{")}))(t)
	m := must(relayer.New(store))(t)
	create(t, m, minimal("b"))
	if file, err := plan.Export(t.Context(), m, relayer.Selector{}); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Export: %s, error %v", file, err)
	}
	if p, err := plan.New(t.Context(), m, nil, plan.Options{}); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("New: %+v, error %v", p, err)
	}
}
