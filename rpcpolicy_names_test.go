package relayer_test

import (
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// A joiner that is not shown makes another name of some names, which somebody
// else can own.
func TestAllowedHostsWithJoiners(t *testing.T) {
	const plain, joined = "क्ष.example", "क्\u200dष.example"
	m, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: []string{plain, "*.example.com"}}))
	if err != nil {
		t.Fatal(err)
	}
	for host, isAllowed := range map[string]bool{
		plain: true, joined: false, "\u200c" + plain: false, "rpc.example.com": true, "rp\u00adc.example.com": true, "rp\u200dc.example.com": false,
	} {
		_, err := m.Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
			CustomRPCURLs: []relayer.RPCConfig{{URL: relayer.RPCURL("https://" + host + "/")}}})
		if isAllowed && err != nil || !isAllowed && !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%q: %v", host, err)
		}
	}
}
