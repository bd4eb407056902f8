package plan_test

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer"
)

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
