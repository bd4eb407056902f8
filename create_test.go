package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// TestIDs tries ids at the limits, by both ways in.
func TestIDs(t *testing.T) {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	for _, id := range []string{"a", "-", "_", "0", all, strings.Repeat("x", 64)} {
		mustCreate(t, newManager(t), minimal(id))
		if document := mustCreateDocument(t, newManager(t), evmBody(fmt.Sprintf("%q:%q", "id", id))); document.ID != id {
			t.Errorf("id %q became %q", id, document.ID)
		}
	}
	for _, id := range []string{strings.Repeat("x", 65), "a b", "a.b", "a/b", "..", "a%20", "é", "a\n", " a", "a:b", "a@b", "a\\b", "ａ"} {
		_, err := newManager(t).Create(context.Background(), minimal(id))
		if err == nil {
			t.Errorf("id %q accepted", id)
			continue
		}
		wantFields(t, fieldErrors(t, err), "id")
		wantFields(t, problemsOf(t, replaced(t, evmBody(`"id":"x"`), "id", treeText(t, id))), "id")
	}
}

// TestImpossibleIDIsNotFound: an id that no relayer can have is no other kind
// of error.
func TestImpossibleIDIsNotFound(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("a"))
	for _, id := range []string{"", "b", "A", "a ", "a/../a", strings.Repeat("x", 65), "\xff", "a\x00"} {
		if _, err := m.Get(context.Background(), id); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("Get(%q): %v", id, err)
		}
		before := []byte("before")
		after, _, err := m.AppendDocument(context.Background(), before, id)
		if !errors.Is(err, relayer.ErrNotFound) || string(after) != "before" {
			t.Errorf("AppendDocument(%q): %q, %v", id, after, err)
		}
	}
}

// TestMadeIDs: an id left out is a version 7 UUID, and ids made later sort
// later.
func TestMadeIDs(t *testing.T) {
	m := newManager(t)
	var ids []string
	for range 50 {
		id := mustCreate(t, m, minimal("")).ID
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id {
			t.Fatalf("made id %q: %v", id, err)
		}
		ids = append(ids, id)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 50 {
		t.Errorf("made ids %q", ids)
	}
}

// TestTakenID: the relayer that has the id stays as it is.
func TestTakenID(t *testing.T) {
	ctx := context.Background()
	m := newManager(t)
	first := mustCreateDocument(t, m, evmBody(`"id":"a"`))
	other := minimal("a")
	other.Name = "other"
	if r, err := m.Create(ctx, other); !errors.Is(err, relayer.ErrExists) || r != nil {
		t.Errorf("Create: %v, %v", r, err)
	}
	if _, err := m.CreateDocument(ctx, []byte(body("solana", `"id":"a"`))); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("CreateDocument: %v", err)
	}
	got, revision, err := m.AppendDocument(ctx, nil, "a")
	if err != nil || string(got) != string(first.JSON) || revision != first.Revision {
		t.Errorf("stored %s at %d, %v, want %+v", got, revision, err, first)
	}
	// What is wrong with the request is told before the id is looked up.
	_, err = m.CreateDocument(ctx, []byte(evmBody(`"id":"a"`, `"notification_id":""`)))
	wantFields(t, fieldErrors(t, err), "notification_id")
}

// TestCreateRace: of many creates of one id, one succeeds and it is the one
// that is stored.
func TestCreateRace(t *testing.T) {
	ctx := context.Background()
	for range 20 {
		m := newManager(t)
		var winner atomic.Pointer[relayer.Relayer]
		var group sync.WaitGroup
		start := make(chan struct{})
		for i := range 32 {
			group.Go(func() {
				<-start
				req := minimal("one")
				req.Name = fmt.Sprint("name ", i)
				r, err := m.Create(ctx, req)
				if err == nil && !winner.CompareAndSwap(nil, r) {
					t.Error("two creates of one id succeeded")
				}
				if err != nil && !errors.Is(err, relayer.ErrExists) {
					t.Errorf("loser got %v", err)
				}
			})
		}
		close(start)
		group.Wait()
		stored, err := m.Get(ctx, "one")
		if err != nil || !reflect.DeepEqual(stored, winner.Load()) {
			t.Fatalf("stored %+v, %v, want %+v", stored, err, winner.Load())
		}
	}
}

// TestPaused: false is an answer, not a field left out.
func TestPaused(t *testing.T) {
	for _, paused := range []string{"true", "false"} {
		document := mustCreateDocument(t, newManager(t), replaced(t, evmBody(), "paused", paused))
		if got := member(t, document.JSON, "paused"); got != paused {
			t.Errorf("paused %s became %s", paused, got)
		}
	}
	wantFields(t, problemsOf(t, without(t, evmBody(), "paused")), "paused")
}

// TestNetworkTypes: there are three, spelled one way.
func TestNetworkTypes(t *testing.T) {
	for _, wrong := range []string{"", "EVM", "bitcoin", "evm ", "solana,stellar"} {
		req := minimal("")
		req.NetworkType = relayer.NetworkType(wrong)
		_, err := newManager(t).Create(context.Background(), req)
		wantFields(t, fieldErrors(t, err), "network_type")
		wantFields(t, problemsOf(t, replaced(t, evmBody(`"policies":{"min_balance":1}`), "network_type", `"`+wrong+`"`)), "network_type")
	}
}

// TestGoRequests covers what only Go code can ask for.
func TestGoRequests(t *testing.T) {
	bad := "a\xffb"
	solana := func(policy relayer.SolanaPolicy) relayer.CreateRequest {
		req := minimal("")
		req.NetworkType, req.Policies = relayer.Solana, &policy
		return req
	}
	stellar := func(policy relayer.StellarPolicy) relayer.CreateRequest {
		req := minimal("")
		req.NetworkType, req.Policies = relayer.Stellar, &policy
		return req
	}
	evm := func(edit func(*relayer.CreateRequest)) relayer.CreateRequest {
		req := minimal("")
		edit(&req)
		return req
	}
	endpoint := func(weight float64) []relayer.RPCConfig {
		return []relayer.RPCConfig{{URL: "https://a.example"}, {URL: "https://b.example", Weight: &weight}}
	}
	tests := map[string]struct {
		req  relayer.CreateRequest
		want []string
	}{
		"nothing":                  {relayer.CreateRequest{}, []string{"name", "network", "network_type", "signer_id"}},
		"another network's policy": {evm(func(r *relayer.CreateRequest) { r.Policies = &relayer.SolanaPolicy{} }), []string{"policies"}},
		"and its problems": {evm(func(r *relayer.CreateRequest) {
			r.Policies = &relayer.StellarPolicy{MaxFee: new(int32(-1))}
			r.Name = ""
		}), []string{"name", "policies.max_fee", "policies"}},
		"bad UTF-8": {evm(func(r *relayer.CreateRequest) {
			r.ID, r.Name, r.Network, r.SignerID, r.NotificationID = bad, bad, bad, bad, bad
			r.Policies = &relayer.EVMPolicy{WhitelistReceivers: []string{"ok", bad}}
		}), []string{"id", "name", "network", "signer_id", "notification_id", "policies.whitelist_receivers[1]"}},
		"NUL": {evm(func(r *relayer.CreateRequest) {
			r.Name, r.NotificationID = "\x00", "a\x00"
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example/\x00"}}
		}), []string{"name", "notification_id", "custom_rpc_urls[0].url"}},
		"no URL":             {evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = make([]relayer.RPCConfig, 2) }), []string{"custom_rpc_urls[0].url", "custom_rpc_urls[1].url"}},
		"weight NaN":         {evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.NaN()) }), []string{"custom_rpc_urls[1].weight"}},
		"weight +Inf":        {evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.Inf(1)) }), []string{"custom_rpc_urls[1].weight"}},
		"weight -Inf":        {evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.Inf(-1)) }), []string{"custom_rpc_urls[1].weight"}},
		"weight over":        {evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.Nextafter(100, 101)) }), []string{"custom_rpc_urls[1].weight"}},
		"weight under":       {evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(-math.SmallestNonzeroFloat64) }), []string{"custom_rpc_urls[1].weight"}},
		"Solana margin NaN":  {solana(relayer.SolanaPolicy{FeeMarginPercentage: new(math.NaN())}), []string{"policies.fee_margin_percentage"}},
		"Solana margin Inf":  {solana(relayer.SolanaPolicy{FeeMarginPercentage: new(math.Inf(-1))}), []string{"policies.fee_margin_percentage"}},
		"Stellar floats NaN": {stellar(relayer.StellarPolicy{FeeMarginPercentage: new(math.NaN()), SlippagePercentage: new(math.Inf(1))}), []string{"policies.fee_margin_percentage", "policies.slippage_percentage"}},
		"token slippage NaN": {solana(relayer.SolanaPolicy{AllowedTokens: []relayer.SolanaAllowedToken{
			{Mint: "m", SwapConfig: &relayer.TokenSwapConfig{SlippagePercentage: new(math.NaN())}},
		}}), []string{"policies.allowed_tokens[0].swap_config.slippage_percentage"}},
		"Solana under 0": {solana(relayer.SolanaPolicy{
			MaxAllowedFeeLamports: new(int64(-1)), MaxSignatures: new(int32(-1)), MaxTxDataSize: new(int32(math.MinInt32)), MinBalance: new(int64(math.MinInt64)),
		}), []string{"policies.max_allowed_fee_lamports", "policies.max_signatures", "policies.max_tx_data_size", "policies.min_balance"}},
		"Stellar under 0": {stellar(relayer.StellarPolicy{MaxFee: new(int32(-1)), MinBalance: new(int64(-1)), TimeoutSeconds: new(int64(-1))}),
			[]string{"policies.max_fee", "policies.min_balance", "policies.timeout_seconds"}},
		"empty choices": {solana(relayer.SolanaPolicy{
			FeePaymentStrategy: new(relayer.FeePaymentStrategy("")),
			SwapConfig:         &relayer.SolanaSwapConfig{Strategy: new(relayer.SolanaSwapStrategy("")), JupiterSwapOptions: &relayer.JupiterSwapOptions{PriorityLevel: new(relayer.JupiterPriorityLevel("x"))}},
		}), []string{"policies.fee_payment_strategy", "policies.swap_config.strategy", "policies.swap_config.jupiter_swap_options.priority_level"}},
		"bad text in Solana": {solana(relayer.SolanaPolicy{
			AllowedAccounts: []string{bad}, AllowedPrograms: []string{bad}, DisallowedAccounts: []string{bad},
			AllowedTokens: []relayer.SolanaAllowedToken{{Mint: bad, Symbol: &bad}, {}},
			SwapConfig:    &relayer.SolanaSwapConfig{CronSchedule: &bad},
		}), []string{"policies.allowed_accounts[0]", "policies.allowed_programs[0]", "policies.disallowed_accounts[0]", "policies.allowed_tokens[0].mint",
			"policies.allowed_tokens[0].symbol", "policies.allowed_tokens[1].mint", "policies.swap_config.cron_schedule"}},
		"bad text in Stellar": {stellar(relayer.StellarPolicy{
			AllowedTokens: []relayer.StellarAllowedToken{
				{Asset: bad, Metadata: &relayer.StellarTokenMetadata{CanonicalAssetID: &bad, Kind: &relayer.StellarTokenKind{Classic: &relayer.StellarClassicAsset{Code: bad}}}},
				{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{Contract: &relayer.StellarContractToken{}}}},
			},
			SwapConfig: &relayer.StellarSwapConfig{CronSchedule: &bad, Strategies: []relayer.StellarSwapStrategy{"soroswap", ""}},
		}), []string{"policies.allowed_tokens[0].asset", "policies.allowed_tokens[0].metadata.canonical_asset_id", "policies.allowed_tokens[0].metadata.kind.classic.code",
			"policies.allowed_tokens[0].metadata.kind.classic.issuer", "policies.allowed_tokens[1].metadata.kind.contract.contract_id",
			"policies.swap_config.cron_schedule", "policies.swap_config.strategies[1]"}},
		"both kinds": {stellar(relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{
			Classic: &relayer.StellarClassicAsset{Code: "c", Issuer: "i"}, Contract: &relayer.StellarContractToken{ContractID: "c"},
		}}}}}), []string{"policies.allowed_tokens[0].metadata.kind.contract"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			r, err := m.Create(context.Background(), test.req)
			if err == nil || r != nil {
				t.Fatalf("accepted: %+v", r)
			}
			wantFields(t, fieldErrors(t, err), test.want...)
			if page, err := m.List(context.Background(), 1, 1); err != nil || page.Pagination.TotalItems != 0 {
				t.Errorf("after a refused create: %+v, %v", page, err)
			}
		})
	}
}

// TestTypedNilPolicy: a nil pointer is no policy, whatever its type.
func TestTypedNilPolicy(t *testing.T) {
	for _, policy := range []relayer.Policy{nil, (*relayer.EVMPolicy)(nil), (*relayer.SolanaPolicy)(nil), (*relayer.StellarPolicy)(nil)} {
		req := minimal("")
		req.Policies = policy
		if r := mustCreate(t, newManager(t), req); !reflect.DeepEqual(r.Policies, &relayer.EVMPolicy{}) {
			t.Errorf("%T: policies %#v", policy, r.Policies)
		}
	}
}

// TestNativeKindThroughGo: a kind with neither field set is the native asset.
func TestNativeKindThroughGo(t *testing.T) {
	req := minimal("a")
	req.NetworkType = relayer.Stellar
	req.Policies = &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "native", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{}}}}}
	m := newManager(t)
	if r := mustCreate(t, m, req); !reflect.DeepEqual(r.Policies, req.Policies) {
		t.Errorf("policies %#v", r.Policies)
	}
	document := storedDocument(t, m, "a")
	if want := `{"allowed_tokens":[{"asset":"native","metadata":{"kind":"native"}}]}`; member(t, []byte(document), "policies") != want {
		t.Errorf("document %s", document)
	}
}

// A type that embeds a policy has all its methods. What it holds would not be
// stored, and a policy that is not stored allows everything.
func TestCreateRefusesPoliciesOfOtherTypes(t *testing.T) {
	type own struct{ *relayer.EVMPolicy }
	m, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
		Policies: own{&relayer.EVMPolicy{EIP1559Pricing: new(true)}}})
	var invalid *relayer.ValidationError
	if !errors.As(err, &invalid) || invalid.Fields[0].Field != "policies" {
		t.Errorf("got %v", err)
	}
}
