package client_test

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
)

// TestPatch_InEffect loses the response to patches of a relayer, reads the relayer back,
// and checks whether the patch counts as applied.
func TestPatch_InEffect(t *testing.T) {
	type patch = relayer.Patch
	full := func(url relayer.RPCURL) []relayer.RPCConfig { return []relayer.RPCConfig{{URL: url}} }
	evm, solana, stellar := evm("a"), relayer.CreateRequest{ID: "a", Name: "s", Network: "n", NetworkType: relayer.Solana, SignerID: "s"},
		relayer.CreateRequest{ID: "a", Name: "s", Network: "n", NetworkType: relayer.Stellar, SignerID: "s",
			Policy: &relayer.StellarPolicy{FeePaymentStrategy: new(relayer.FeePaidByUser), FeeMarginPercentage: new(0.5)}}
	lamports := solana
	lamports.Policy = &relayer.SolanaPolicy{MinBalance: new(int64(5))}
	bare := changed(func(r *relayer.CreateRequest) { r.CustomRPCURLs = full("https://user:hunter2@rpc.example") })
	token := relayer.StellarAllowedToken{Asset: "native", MaxAllowedFee: new(uint64(7)), Metadata: &relayer.StellarTokenMetadata{}}
	tokens := stellar
	tokens.Policy = &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{token}, SwapConfig: &relayer.StellarSwapConfig{}}
	noPolicy := changed(func(r *relayer.CreateRequest) { r.Policy = nil })
	empty := changed(func(r *relayer.CreateRequest) { r.Policy = &relayer.EVMPolicy{WhitelistReceivers: []string{}} })
	policies := func(members patch) patch { return patch{"policies": members} }
	list := func(elements ...any) patch { return policies(patch{"allowed_tokens": elements}) }
	tests := map[string]struct {
		stored     relayer.CreateRequest
		patch      patch
		isInEffect bool
	}{
		"nothing":                         {evm, patch{}, true},
		"all":                             {evm, patch{"name": "name of a", "paused": false, "notification_id": "n"}, true},
		"another name":                    {evm, patch{"name": "other"}, false},
		"paused":                          {evm, patch{"paused": true}, false},
		"a member not cleared":            {evm, patch{"notification_id": nil}, false},
		"a cleared member":                {solana, patch{"notification_id": nil}, true},
		"the URL":                         {evm, patch{"custom_rpc_urls": full("https://rpc.example/v2/secret-key")}, false},
		"a URL that differs in its key":   {evm, patch{"custom_rpc_urls": full("https://rpc.example/other")}, false},
		"a URL without a mask":            {bare, patch{"custom_rpc_urls": full("https://rpc.example")}, false}, // user information is not shown
		"another URL":                     {evm, patch{"custom_rpc_urls": full("https://other.example/v2/secret-key")}, false},
		"another weight":                  {evm, patch{"custom_rpc_urls": []relayer.RPCConfig{{URL: "https://rpc.example/v2/secret-key", Weight: new(1.0)}}}, false},
		"no URLs":                         {evm, patch{"custom_rpc_urls": full("")[:0]}, false},
		"no URLs, as stored":              {solana, patch{"custom_rpc_urls": full("")[:0]}, true},
		"URLs not cleared":                {evm, patch{"custom_rpc_urls": nil}, false},
		"the amount as number":            {evm, patch{"policies": patch{"gas_price_cap": json.Number("1e18")}}, true},
		"the amount as text":              {evm, patch{"policies": patch{"gas_price_cap": "1000000000000000000"}}, true},
		"an amount that would be rounded": {evm, patch{"policies": patch{"gas_price_cap": json.Number("1000000000000000001")}}, false},
		"a policy":                        {evm, patch{"policies": &relayer.EVMPolicy{WhitelistReceivers: []string{"0x1"}}}, true},
		"a longer list":                   {evm, patch{"policies": &relayer.EVMPolicy{WhitelistReceivers: []string{"0x1", "0x2"}}}, false},
		"a shorter list":                  {evm, patch{"policies": &relayer.EVMPolicy{WhitelistReceivers: []string{}}}, false},
		"a field that is not set":         {evm, patch{"policies": patch{"min_balance": 0}}, false},
		"a cleared field":                 {evm, patch{"policies": patch{"min_balance": nil}}, true},
		"a field not cleared":             {evm, patch{"policies": patch{"gas_price_cap": nil}}, false},
		"policies not cleared":            {evm, patch{"policies": nil}, false},
		"an element":                      {tokens, list(token), true},
		"an element with null":            {tokens, list(patch{"asset": "native", "max_allowed_fee": json.Number("7.0"), "metadata": patch{}, "swap_config": nil}), true},
		"an element with less":            {tokens, list(patch{"asset": "native", "metadata": patch{}}), false},
		"an element with a missing part":  {tokens, list(patch{"asset": "native", "max_allowed_fee": 7}), false},
		"an element with more":            {tokens, list(patch{"asset": "native", "max_allowed_fee": 7, "metadata": patch{}, "swap_config": patch{}}), false},
		"more elements":                   {tokens, list(token, token), false},
		"no elements":                     {tokens, list(), false},
		"no elements, absent":             {noPolicy, policies(patch{"whitelist_receivers": []string{}}), false},
		"no elements, as stored":          {empty, policies(patch{"whitelist_receivers": []string{}}), true},
		"a list not cleared":              {empty, policies(patch{"whitelist_receivers": nil}), false},
		"an empty object":                 {tokens, policies(patch{"swap_config": patch{}}), true},
		"an empty object, absent":         {stellar, policies(patch{"swap_config": patch{}}), false},
		"an empty object not cleared":     {tokens, policies(patch{"swap_config": nil}), false},
		"an empty policy":                 {evm, policies(patch{}), true},
		"a fraction":                      {stellar, patch{"policies": patch{"fee_margin_percentage": json.Number("5e-1")}}, true},
		"another fraction":                {stellar, patch{"policies": patch{"fee_margin_percentage": 0.25}}, false},
		"the strategy not cleared":        {stellar, patch{"policies": patch{"fee_payment_strategy": nil}}, false},
		"policies cleared to a default":   {solana, patch{"policies": nil}, true},
		"a field cleared to a default":    {solana, patch{"policies": patch{"fee_payment_strategy": nil}}, true},
		"a field set to the default":      {solana, patch{"policies": patch{"fee_payment_strategy": "user"}}, true},
		"a fixed member":                  {evm, patch{"network": "sepolia"}, false}, // a server rejects these, although the values are equal
		"an unknown member":               {evm, patch{"owner": nil}, false},
		"an unknown field":                {evm, policies(patch{"max_fee": nil}), false},
		"a number as text":                {lamports, policies(patch{"min_balance": "5"}), false},
		"a field not set from a default":  {solana, patch{"policies": patch{"fee_payment_strategy": "relayer"}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steps := []step{reset, stored(t, test.stored, 200, 9)}
				if _, ok := test.patch["policies"].(relayer.Policy); ok { // its type is checked first
					steps = append([]step{stored(t, test.stored, 200, 9)}, steps...)
				}
				c, _ := scripted(t, nil, steps...)
				_, err := c.Patch(t.Context(), "a", test.patch)
				if test.isInEffect && err != nil || !test.isInEffect && !errors.Is(err, relayer.ErrOutcomeUnknown) {
					t.Errorf("error %v, want in effect: %t", err, test.isInEffect)
				}
			})
		})
	}
}

// TestCreate_InEffect loses the response to a create, reads a relayer with its ID, and
// checks whether it counts as the created one.
func TestCreate_InEffect(t *testing.T) {
	minimal := relayer.CreateRequest{ID: "a", Name: "n", Network: "n", NetworkType: relayer.EVM, SignerID: "s"}
	with := func(change func(*relayer.CreateRequest)) relayer.CreateRequest {
		req := minimal
		change(&req)
		return req
	}
	endpoint := relayer.RPCConfig{URL: "https://rpc.example/v2/secret-key"}
	endpoints := func(list ...relayer.RPCConfig) relayer.CreateRequest {
		return with(func(r *relayer.CreateRequest) { r.CustomRPCURLs = list })
	}
	policy := func(policy relayer.Policy) relayer.CreateRequest {
		return with(func(r *relayer.CreateRequest) { r.NetworkType, r.Policy = policy.NetworkType(), policy })
	}
	tests := map[string]struct {
		request, stored relayer.CreateRequest
		isInEffect      bool
	}{
		"equal":                 {evm("a"), evm("a"), true},
		"minimal":               {minimal, minimal, true},
		"default weight":        {endpoints(endpoint), endpoints(relayer.RPCConfig{URL: endpoint.URL, Weight: new(100.0)}), true},
		"no endpoints":          {endpoints([]relayer.RPCConfig{}...), minimal, true},
		"default strategy":      {policy(&relayer.SolanaPolicy{}), policy(&relayer.SolanaPolicy{FeePaymentStrategy: new(relayer.FeePaidByUser)}), true},
		"empty policy":          {policy(&relayer.EVMPolicy{}), minimal, true},
		"another endpoint":      {minimal, endpoints(endpoint), false},
		"more endpoints":        {endpoints(endpoint), endpoints(endpoint, endpoint), false},
		"another weight":        {endpoints(endpoint), endpoints(relayer.RPCConfig{URL: endpoint.URL, Weight: new(1.0)}), false},
		"another notification":  {minimal, with(func(r *relayer.CreateRequest) { r.NotificationID = "n" }), false},
		"another paused":        {minimal, with(func(r *relayer.CreateRequest) { r.Paused = true }), false},
		"another policy":        {minimal, policy(&relayer.EVMPolicy{WhitelistReceivers: []string{"0x1"}}), false},
		"an empty list":         {minimal, policy(&relayer.EVMPolicy{WhitelistReceivers: []string{}}), false},
		"more in the policy":    {policy(&relayer.EVMPolicy{MinBalance: new(relayer.MustParseAmount("1"))}), policy(&relayer.EVMPolicy{MinBalance: new(relayer.MustParseAmount("1")), GasPriceCap: new(relayer.MustParseAmount("1"))}), false},
		"not the default value": {policy(&relayer.SolanaPolicy{}), policy(&relayer.SolanaPolicy{FeePaymentStrategy: new(relayer.FeePaidByRelayer)}), false},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			c, _ := scripted(t, nil, reset, stored(t, test.stored, 200, 9))
			_, err := c.Create(t.Context(), test.request)
			if test.isInEffect && err != nil || !test.isInEffect && !errors.Is(err, relayer.ErrOutcomeUnknown) {
				t.Errorf("%s: error %v, want in effect: %t", name, err, test.isInEffect)
			}
		})
	}
}

// A host sets these members, also right after the create.
func TestCreate_InEffectHostMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found := respondJSON(200, `{"success":true,"data":{"id":"a","name":"n","network":"n","network_type":"evm","address":"0x1","paused":false,
			"system_disabled":true,"disabled_reason":{"type":"NonceSyncFailed","details":"d"},"signer_id":"s","policies":{},"new":1}}`)
		c, _ := scripted(t, nil, reset, found)
		r, err := c.Create(t.Context(), relayer.CreateRequest{ID: "a", Name: "n", Network: "n", NetworkType: relayer.EVM, SignerID: "s"})
		if err != nil || !r.SystemDisabled {
			t.Errorf("created %v, error %v", r, err)
		}
	})
}
