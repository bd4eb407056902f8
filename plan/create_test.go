package plan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

// fullFields are the fields of a relayer with every field of its network type.
var fullFields = map[relayer.NetworkType]string{
	relayer.EVM: `"notification_id": "alerts",
		"custom_rpc_urls": [{"weight": 12.5, "url": "https://user:pass@eth.example:8545/v2/KEY?k=v#f"}, {"url": "wss://b.example"}],
		"policies": {"whitelist_receivers": ["0xabc", "é<&> \u2713"], "private_transactions": false, "min_balance": 1e21,
			"include_revert_data": true, "gas_price_cap": 115792089237316195423570985008687907853269984665640564039457584007913129639935,
			"gas_limit_estimation": false, "eip1559_pricing": true}`,
	relayer.Solana: `"notification_id": "alerts",
		"custom_rpc_urls": [{"url": "http://sol.example/", "weight": 0}],
		"policies": {"swap_config": {"jupiter_swap_options": {"dynamic_compute_unit_limit": false, "priority_level": "veryHigh",
				"priority_fee_max_lamports": 18446744073709551615}, "min_balance_threshold": 0, "cron_schedule": "0 */6 * * *", "strategy": "jupiter-swap"},
			"min_balance": 9223372036854775807, "max_tx_data_size": 2147483647, "max_signatures": 0, "max_allowed_fee_lamports": 5.0,
			"fee_payment_strategy": "relayer", "fee_margin_percentage": 0.1, "disallowed_accounts": [],
			"allowed_tokens": [{"mint": "mint-1", "decimals": 255, "symbol": "", "max_allowed_fee": 7,
				"swap_config": {"retain_min_amount": 3, "max_amount": 2, "min_amount": 1, "slippage_percentage": 0.5}}, {"mint": "mint-2"}],
			"allowed_programs": ["p"], "allowed_accounts": ["a", "b"]}`,
	relayer.Stellar: `"notification_id": "alerts",
		"custom_rpc_urls": [{"url": "ws://xlm.example:8000", "weight": 100}],
		"policies": {"timeout_seconds": 30, "slippage_percentage": 1.5, "min_balance": 0, "max_fee": 2147483647, "fee_payment_strategy": "user",
			"swap_config": {"min_balance_threshold": 50e-1, "cron_schedule": "", "strategies": ["soroswap", "order-book"]},
			"fee_margin_percentage": 10, "concurrent_transactions": true,
			"allowed_tokens": [{"asset": "native", "metadata": {"kind": "native", "decimals": 4294967295, "canonical_asset_id": "native"},
					"max_allowed_fee": 18446744073709551615, "swap_config": {"retain_min_amount": 0, "max_amount": 2, "min_amount": 1, "slippage_percentage": 0}},
				{"asset": "USDC:G1", "metadata": {"kind": {"classic": {"issuer": "G1", "code": "USDC"}}}},
				{"asset": "C1", "metadata": {"kind": {"contract": {"contract_id": "C1"}}}}]}`,
}

// A create or an update by a plan stores the same document as the same fields by POST.
func TestApply_SameDocumentAsPost(t *testing.T) {
	for networkType, full := range fullFields {
		required := fmt.Sprintf(`"id": "a", "name": "Full", "network": "x", "network_type": %q, "paused": true, "signer_id": "s"`, networkType)
		for name, optional := range map[string]string{
			"full": full, "minimal": "", "empty": `"custom_rpc_urls": [], "policies": {}`, "null": `"notification_id": null, "custom_rpc_urls": null, "policies": null`,
			"default weight": `"custom_rpc_urls": [{"url": "https://a.example/KEY"}]`,
		} {
			body := "{" + strings.TrimSuffix(required+", "+optional, ", ") + "}"
			posted, created, updated := newManager(t), newManager(t), newManager(t)
			for m, existing := range map[*relayer.Manager]string{posted: body, updated: "{" + required + "," + full + "}"} {
				must(m.Documents().Create(t.Context(), []byte(existing)))(t)
			}
			desired := parse(t, `{"relayers": [`+body+`]}`).Relayers
			for kind, m := range map[string]*relayer.Manager{"create": created, "update": updated} {
				mustApply(t, newPlan(t, m, desired))
				if got, want := document(t, m, "a"), document(t, posted, "a"); got != want {
					t.Errorf("%s %s, %s: stored\n%s\nwant\n%s", networkType, name, kind, got, want)
				}
				expectActions(t, newPlan(t, m, desired), plan.Unchanged)
			}
		}
	}
}

func document(t *testing.T, m *relayer.Manager, id string) string {
	t.Helper()
	found := must(m.Documents().Get(context.Background(), id))(t)
	return string(found.JSON)
}

// A create shows every field, with the hidden parts of its URLs masked.
func TestNew_CreateShowsFields(t *testing.T) {
	req := withURLs("a", "https://"+secret+"@a.example", "https://b.example/"+secret)
	cap := relayer.MustParseAmount("7")
	req.NotificationID, req.Paused, req.Policy = "alerts\x1b", true, &relayer.EVMPolicy{GasPriceCap: &cap, WhitelistReceivers: []string{}}
	req.CustomRPCURLs[1].Weight = new(0.0)
	const want = `+ create a
    name: "n", network: "sepolia", network_type: "evm", notification_id: "alerts\u001b", paused: true, signer_id: "s"
    custom_rpc_urls: [{"url":"https://a.example","weight":100},{"url":"https://b.example/***","weight":0}]
    policies.gas_price_cap: 7
    policies.whitelist_receivers: []
1 to create, 0 to update, 0 to delete, 0 unchanged
`
	if got := newPlan(t, newManager(t), []relayer.CreateRequest{req}).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
