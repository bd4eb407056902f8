package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// TestCreate_ID covers IDs at the limits, through Create and CreateDocument.
func TestCreate_ID(t *testing.T) {
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

// An ID that no relayer can have is not found, like any other.
func TestGet_InvalidID(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("a"))
	for _, id := range []string{"", "b", "A", "a ", "a/../a", strings.Repeat("x", 65), "\xff", "a\x00"} {
		if _, err := m.Get(context.Background(), id); !errors.Is(err, relayer.ErrNotFound) {
			t.Errorf("Get(%q): %v", id, err)
		}
		if document, err := m.Documents().Get(context.Background(), id); !errors.Is(err, relayer.ErrNotFound) || document.JSON != nil {
			t.Errorf("GetDocument(%q): %v, %v", id, document, err)
		}
	}
}

// An omitted ID becomes a version 7 UUID; later IDs sort after earlier ones.
func TestCreate_GeneratedID(t *testing.T) {
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
		t.Errorf("generated IDs %q", ids)
	}
}

// The relayer with the ID is unchanged.
func TestCreate_DuplicateID(t *testing.T) {
	ctx := context.Background()
	m := newManager(t)
	first := mustCreateDocument(t, m, evmBody(`"id":"a"`))
	other := minimal("a")
	other.Name = "other"
	if r, err := m.Create(ctx, other); !errors.Is(err, relayer.ErrExists) || r != nil {
		t.Errorf("Create: %v, %v", r, err)
	}
	if _, err := m.Documents().Create(ctx, []byte(body("solana", `"id":"a"`))); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("CreateDocument: %v", err)
	}
	got, err := m.Documents().Get(ctx, "a")
	if err != nil || !reflect.DeepEqual(got, first) {
		t.Errorf("stored %s at %d, %v, want %+v", got.JSON, got.Revision, err, first)
	}
	// The request is validated before the ID is looked up.
	_, err = m.Documents().Create(ctx, []byte(evmBody(`"id":"a"`, `"notification_id":""`)))
	wantFields(t, fieldErrors(t, err), "notification_id")
}

func TestCreate_UnknownNetworkType(t *testing.T) {
	for _, wrong := range []string{"", "EVM", "fictional", "evm ", "solana,stellar"} {
		req := minimal("")
		req.NetworkType = relayer.NetworkType(wrong)
		_, err := newManager(t).Create(context.Background(), req)
		wantFields(t, fieldErrors(t, err), "network_type")
		wantFields(t, problemsOf(t, replaced(t, evmBody(`"policies":{"min_balance":1}`), "network_type", `"`+wrong+`"`)), "network_type")
	}
}

type invalidRequest struct {
	name string
	req  relayer.CreateRequest
	want []string // the fields of the error
}

// TestCreate_InvalidRequests sends requests that are possible only in Go.
func TestCreate_InvalidRequests(t *testing.T) {
	for _, test := range slices.Concat(invalidFields(), invalidSolanaPolicies(), invalidStellarPolicies()) {
		t.Run(test.name, func(t *testing.T) {
			m := newManager(t)
			r, err := m.Create(context.Background(), test.req)
			if err == nil || r != nil {
				t.Fatalf("accepted: %+v", r)
			}
			wantFields(t, fieldErrors(t, err), test.want...)
			if page, err := m.List(context.Background(), relayer.ListQuery{Page: 1, PerPage: 1}); err != nil || page.Pagination.TotalItems != 0 {
				t.Errorf("after a rejected create: %+v, %v", page, err)
			}
		})
	}
}

// notUTF8 is rejected in every text.
const notUTF8 = "a\xffb"

func invalidFields() []invalidRequest {
	evm := func(edit func(*relayer.CreateRequest)) relayer.CreateRequest {
		req := minimal("")
		edit(&req)
		return req
	}
	endpoint := func(weight float64) []relayer.RPCConfig {
		return []relayer.RPCConfig{{URL: "https://a.example"}, {URL: "https://b.example", Weight: &weight}}
	}
	return []invalidRequest{
		{"nothing", relayer.CreateRequest{}, []string{"name", "network", "network_type", "signer_id"}},
		{"another network's policy", evm(func(r *relayer.CreateRequest) { r.Policy = &relayer.SolanaPolicy{} }), []string{"policies"}},
		{"another network's policy with a problem", evm(func(r *relayer.CreateRequest) {
			r.Policy = &relayer.StellarPolicy{MaxFee: new(int32(-1))}
			r.Name = ""
		}), []string{"name", "policies.max_fee", "policies"}},
		{"bad UTF-8", evm(func(r *relayer.CreateRequest) {
			r.ID, r.Name, r.Network, r.SignerID, r.NotificationID = notUTF8, notUTF8, notUTF8, notUTF8, notUTF8
			r.Policy = &relayer.EVMPolicy{WhitelistReceivers: []string{"ok", notUTF8}}
		}), []string{"id", "name", "network", "signer_id", "notification_id", "policies.whitelist_receivers[1]"}},
		{"NUL", evm(func(r *relayer.CreateRequest) {
			r.Name, r.NotificationID = "\x00", "a\x00"
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example/\x00"}}
		}), []string{"name", "notification_id", "custom_rpc_urls[0].url"}},
		{"no URL", evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = make([]relayer.RPCConfig, 2) }), []string{"custom_rpc_urls[0].url", "custom_rpc_urls[1].url"}},
		{"weight NaN", evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.NaN()) }), []string{"custom_rpc_urls[1].weight"}},
		{"weight +Inf", evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.Inf(1)) }), []string{"custom_rpc_urls[1].weight"}},
		{"weight -Inf", evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.Inf(-1)) }), []string{"custom_rpc_urls[1].weight"}},
		{"weight over", evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(math.Nextafter(100, 101)) }), []string{"custom_rpc_urls[1].weight"}},
		{"weight under", evm(func(r *relayer.CreateRequest) { r.CustomRPCURLs = endpoint(-math.SmallestNonzeroFloat64) }), []string{"custom_rpc_urls[1].weight"}},
	}
}

func invalidSolanaPolicies() []invalidRequest {
	solana := func(policy relayer.SolanaPolicy) relayer.CreateRequest {
		req := minimal("")
		req.NetworkType, req.Policy = relayer.Solana, &policy
		return req
	}
	bad := notUTF8
	return []invalidRequest{
		{"Solana margin NaN", solana(relayer.SolanaPolicy{FeeMarginPercentage: new(math.NaN())}), []string{"policies.fee_margin_percentage"}},
		{"Solana margin Inf", solana(relayer.SolanaPolicy{FeeMarginPercentage: new(math.Inf(-1))}), []string{"policies.fee_margin_percentage"}},
		{"token slippage NaN", solana(relayer.SolanaPolicy{AllowedTokens: []relayer.SolanaAllowedToken{
			{Mint: "m", SwapConfig: &relayer.TokenSwapConfig{SlippagePercentage: new(math.NaN())}},
		}}), []string{"policies.allowed_tokens[0].swap_config.slippage_percentage"}},
		{"Solana under 0", solana(relayer.SolanaPolicy{
			MaxAllowedFeeLamports: new(int64(-1)), MaxSignatures: new(int32(-1)), MaxTxDataSize: new(int32(math.MinInt32)), MinBalance: new(int64(math.MinInt64)),
		}), []string{"policies.max_allowed_fee_lamports", "policies.max_signatures", "policies.max_tx_data_size", "policies.min_balance"}},
		{"empty choices", solana(relayer.SolanaPolicy{
			FeePaymentStrategy: new(relayer.FeePaymentStrategy("")),
			SwapConfig:         &relayer.SolanaSwapConfig{Strategy: new(relayer.SolanaSwapStrategy("")), JupiterSwapOptions: &relayer.JupiterSwapOptions{PriorityLevel: new(relayer.JupiterPriorityLevel("x"))}},
		}), []string{"policies.fee_payment_strategy", "policies.swap_config.strategy", "policies.swap_config.jupiter_swap_options.priority_level"}},
		{"bad text in Solana", solana(relayer.SolanaPolicy{
			AllowedAccounts: []string{bad}, AllowedPrograms: []string{bad}, DisallowedAccounts: []string{bad},
			AllowedTokens: []relayer.SolanaAllowedToken{{Mint: bad, Symbol: &bad}, {}},
			SwapConfig:    &relayer.SolanaSwapConfig{CronSchedule: &bad},
		}), []string{"policies.allowed_accounts[0]", "policies.allowed_programs[0]", "policies.disallowed_accounts[0]", "policies.allowed_tokens[0].mint",
			"policies.allowed_tokens[0].symbol", "policies.allowed_tokens[1].mint", "policies.swap_config.cron_schedule"}},
	}
}

func invalidStellarPolicies() []invalidRequest {
	stellar := func(policy relayer.StellarPolicy) relayer.CreateRequest {
		req := minimal("")
		req.NetworkType, req.Policy = relayer.Stellar, &policy
		return req
	}
	bad := notUTF8
	return []invalidRequest{
		{"Stellar floats NaN", stellar(relayer.StellarPolicy{FeeMarginPercentage: new(math.NaN()), SlippagePercentage: new(math.Inf(1))}), []string{"policies.fee_margin_percentage", "policies.slippage_percentage"}},
		{"Stellar under 0", stellar(relayer.StellarPolicy{MaxFee: new(int32(-1)), MinBalance: new(int64(-1)), TimeoutSeconds: new(int64(-1))}),
			[]string{"policies.max_fee", "policies.min_balance", "policies.timeout_seconds"}},
		{"bad text in Stellar", stellar(relayer.StellarPolicy{
			AllowedTokens: []relayer.StellarAllowedToken{
				{Asset: bad, Metadata: &relayer.StellarTokenMetadata{CanonicalAssetID: &bad, Kind: &relayer.StellarTokenKind{Classic: &relayer.StellarClassicAsset{Code: bad}}}},
				{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{Contract: &relayer.StellarContractToken{}}}},
			},
			SwapConfig: &relayer.StellarSwapConfig{CronSchedule: &bad, Strategies: []relayer.StellarSwapStrategy{"soroswap", ""}},
		}), []string{"policies.allowed_tokens[0].asset", "policies.allowed_tokens[0].metadata.canonical_asset_id", "policies.allowed_tokens[0].metadata.kind.classic.code",
			"policies.allowed_tokens[0].metadata.kind.classic.issuer", "policies.allowed_tokens[1].metadata.kind.contract.contract_id",
			"policies.swap_config.cron_schedule", "policies.swap_config.strategies[1]"}},
		{"both kinds", stellar(relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{
			Classic: &relayer.StellarClassicAsset{Code: "c", Issuer: "i"}, Contract: &relayer.StellarContractToken{ContractID: "c"},
		}}}}}), []string{"policies.allowed_tokens[0].metadata.kind.contract"}},
	}
}

// A nil pointer to the policy of the network type means that there is no policy.
func TestCreate_NilPolicy(t *testing.T) {
	for _, policy := range []relayer.Policy{nil, (*relayer.EVMPolicy)(nil)} {
		req := minimal("")
		req.Policy = policy
		if r := mustCreate(t, newManager(t), req); !reflect.DeepEqual(r.Policy, &relayer.EVMPolicy{}) {
			t.Errorf("%T: policies %#v", policy, r.Policy)
		}
	}
	for _, policy := range []relayer.Policy{(*relayer.SolanaPolicy)(nil), (*relayer.StellarPolicy)(nil), (*relayer.UnknownPolicy)(nil)} {
		req := minimal("")
		req.Policy = policy
		wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), req))), "policies")
	}
}

// A kind with neither field set is the native asset.
func TestCreate_NativeTokenKind(t *testing.T) {
	req := minimal("a")
	req.NetworkType = relayer.Stellar
	req.Policy = &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "native", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{}}}}}
	m := newManager(t)
	if r := mustCreate(t, m, req); !reflect.DeepEqual(r.Policy, req.Policy) {
		t.Errorf("policies %#v", r.Policy)
	}
	document := storedDocument(t, m, "a")
	if want := `{"allowed_tokens":[{"asset":"native","metadata":{"kind":"native"}}]}`; member(t, []byte(document), "policies") != want {
		t.Errorf("document %s", document)
	}
}

// A type that embeds a policy implements Policy, but its fields would not be stored. A
// policy that is not stored permits everything.
func TestCreate_PolicyOfAnotherPackage(t *testing.T) {
	type own struct{ *relayer.EVMPolicy }
	m, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
		Policy: own{&relayer.EVMPolicy{EIP1559Pricing: new(true)}}})
	var invalid *relayer.ValidationError
	if !errors.As(err, &invalid) || invalid.Fields[0].Field != "policies" {
		t.Errorf("got %v", err)
	}
}

// richRequest returns a request with a pointer or slice of every kind.
func richRequest() relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: "rich", Name: "n", Network: "devnet", NetworkType: relayer.Solana, SignerID: "s",
		CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example/key"}, {URL: "https://b.example", Weight: new(1.0)}},
		Policy: &relayer.SolanaPolicy{
			AllowedAccounts: []string{"a"},
			AllowedTokens:   []relayer.SolanaAllowedToken{{Mint: "m", Decimals: new(uint8(6)), SwapConfig: &relayer.TokenSwapConfig{MinAmount: new(uint64(1))}}},
			MinBalance:      new(int64(1)),
			SwapConfig:      &relayer.SolanaSwapConfig{Strategy: new(relayer.SwapJupiter)},
		},
	}
}

// scramble changes everything that a Solana policy and endpoints point to.
func scramble(endpoints []relayer.RPCConfig, policy relayer.Policy) {
	for i := range endpoints {
		endpoints[i].URL = "https://scrambled.example"
		if endpoints[i].Weight != nil {
			*endpoints[i].Weight = 99
		}
	}
	solana := policy.(*relayer.SolanaPolicy)
	solana.AllowedAccounts[0] = "scrambled"
	solana.AllowedTokens[0].Mint = "scrambled"
	*solana.AllowedTokens[0].Decimals = 99
	*solana.AllowedTokens[0].SwapConfig.MinAmount = 99
	*solana.MinBalance = 99
	*solana.SwapConfig.Strategy = relayer.SwapNone
	solana.FeePaymentStrategy = new(relayer.FeePaidByRelayer)
}

// Defaults are not written into the request of the caller.
func TestCreate_RequestUnchanged(t *testing.T) {
	req := richRequest()
	mustCreate(t, newManager(t), req)
	if !reflect.DeepEqual(req, richRequest()) {
		t.Errorf("Create changed its request to %#v", req)
	}
}

// A change of the request, or of a relayer that was read, does not change what is
// stored.
func TestCreate_StoredCopyIsIndependent(t *testing.T) {
	ctx := context.Background()
	m := newManager(t)
	req := richRequest()
	created := mustCreate(t, m, req)
	pristine, err := m.Get(ctx, "rich")
	if err != nil {
		t.Fatal(err)
	}
	document := storedDocument(t, m, "rich")

	scramble(req.CustomRPCURLs, req.Policy)
	if !reflect.DeepEqual(created, pristine) {
		t.Error("the created relayer shares memory with the request")
	}
	scramble(created.CustomRPCURLs, created.Policy)
	read, err := m.Get(ctx, "rich")
	if err != nil {
		t.Fatal(err)
	}
	scramble(read.CustomRPCURLs, read.Policy)
	page, err := m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 1})
	if err != nil {
		t.Fatal(err)
	}
	scramble(page.Relayers[0].CustomRPCURLs, page.Relayers[0].Policy)

	if again, err := m.Get(ctx, "rich"); err != nil || !reflect.DeepEqual(again, pristine) {
		t.Errorf("stored %#v, %v, want %#v", again, err, pristine)
	}
	if again := storedDocument(t, m, "rich"); again != document {
		t.Errorf("stored %s, want %s", again, document)
	}
}

// The body belongs to the caller, before and after the call.
func TestCreateDocument_BodyUnchanged(t *testing.T) {
	for _, full := range fullRelayers {
		m := newFullManager(t)
		body := []byte(full.request)
		created, err := m.Documents().Create(context.Background(), body)
		if err != nil {
			t.Fatal(err)
		}
		if string(body) != full.request {
			t.Errorf("%s: the body was changed", full.networkType)
		}
		clear(body)
		if got := storedDocument(t, m, created.ID); got != full.document {
			t.Errorf("%s: stored %s", full.networkType, got)
		}
	}
}

func TestCreate_Revision(t *testing.T) {
	m := newManager(t)
	first, second := mustCreate(t, m, minimal("a")), mustCreateDocument(t, m, evmBody(`"id":"b"`))
	if first.Revision == 0 || second.Revision == 0 {
		t.Errorf("revisions %d and %d", first.Revision, second.Revision)
	}
	read, err := m.Get(context.Background(), "b")
	if err != nil || read.Revision != second.Revision {
		t.Errorf("revision %d, %v, want %d", read.Revision, err, second.Revision)
	}
}

func TestCreate_DoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := newManager(t)
	if _, err := m.Create(ctx, minimal("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Create: %v", err)
	}
	if _, err := m.Get(context.Background(), "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
}
