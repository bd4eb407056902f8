package relayer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/bolt"
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
		wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), minimal(id)))), "id")
		wantFields(t, problemsOf(t, evmBody(`"id":`+treeText(t, id))), "id")
	}
}

// An omitted ID becomes a version 7 UUID; later IDs sort after earlier ones.
func TestCreate_GeneratedID(t *testing.T) {
	m := newManager(t)
	last := ""
	for range 50 {
		id := mustCreate(t, m, minimal("")).ID
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || parsed.String() != id || id <= last {
			t.Fatalf("made id %q after %q: %v", id, last, err)
		}
		last = id
	}
}

// The relayer with the ID is unchanged.
func TestCreate_DuplicateID(t *testing.T) {
	m := newManager(t)
	first := mustCreateDocument(t, m, evmBody(`"id":"a"`))
	if r, err := m.Create(t.Context(), named("a", "other")); !errors.Is(err, relayer.ErrExists) || r != nil {
		t.Errorf("Create: %v, %v", r, err)
	}
	if _, err := m.Documents().Create(t.Context(), []byte(body("solana", `"id":"a"`))); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("CreateDocument: %v", err)
	}
	if got := must(m.Documents().Get(t.Context(), "a"))(t); !reflect.DeepEqual(got, first) {
		t.Errorf("stored %s at %d, want %+v", got.JSON, got.Revision, first)
	}
	// The request is validated before the ID is looked up.
	_, err := m.Documents().Create(t.Context(), []byte(evmBody(`"id":"a"`, `"notification_id":""`)))
	wantFields(t, fieldErrors(t, err), "notification_id")
}

// An invalidValue is a change that a create or an update must reject. Many of the values are
// possible only in Go.
type invalidValue struct {
	name        string
	networkType relayer.NetworkType
	change      func(r *relayer.Relayer)
	want        []string // the fields of the error
	message     string   // of each field, or "" for any
	only        relayer.Action
}

func TestWrites_InvalidValues(t *testing.T) {
	for _, c := range slices.Concat(invalidFields(), invalidUpdates(), invalidSolanaPolicies(), invalidStellarPolicies()) {
		t.Run(c.name, func(t *testing.T) {
			m, empty := registry(t), newManager(t)
			id := string(c.networkType)
			before, changed := mustGet(t, m, id), mustGet(t, m, id)
			c.change(changed)
			errs := map[relayer.Action]error{
				relayer.ActionCreate: second(empty.Create(t.Context(), requestFor(changed))),
				relayer.ActionUpdate: second(updating(c.change)(m, t.Context(), id)),
				"validate":           requestFor(changed).Validate(t.Context()),
			}
			for action, err := range errs {
				if c.only != "" && (c.only == relayer.ActionUpdate) != (action == relayer.ActionUpdate) {
					continue
				}
				problems := fieldErrors(t, err)
				wantFields(t, problems, c.want...)
				for _, problem := range problems {
					if c.message != "" && problem.Message != c.message {
						t.Errorf("%s: %+v, want %q", action, problem, c.message)
					}
				}
			}
			if after := mustGet(t, m, id); !reflect.DeepEqual(after, before) {
				t.Errorf("was %+v\nis  %+v", before, after)
			}
			if stored := allOf(t, empty, relayer.Selector{}); c.only == "" && len(stored) != 0 {
				t.Errorf("created %v", stored)
			}
		})
	}
}

// notUTF8 is rejected in every text.
const notUTF8 = "a\xffb"

func invalidFields() []invalidValue {
	const notFinite = "must be a finite number, and not -0"
	weight := func(weight float64) func(*relayer.Relayer) {
		return func(r *relayer.Relayer) {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example"}, {URL: "https://b.example", Weight: &weight}}
		}
	}
	url := func(urls ...relayer.RPCURL) func(*relayer.Relayer) {
		return func(r *relayer.Relayer) {
			r.CustomRPCURLs = nil
			for _, url := range urls {
				r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: url})
			}
		}
	}
	const first, second = "custom_rpc_urls[0].url", "custom_rpc_urls[1].weight"
	return []invalidValue{
		{"nothing", relayer.EVM, func(r *relayer.Relayer) { *r = relayer.Relayer{} }, []string{"name", "network", "network_type", "signer_id"}, "", relayer.ActionCreate},
		{"empty name", relayer.EVM, func(r *relayer.Relayer) { r.Name = "" }, []string{"name"}, "must not be empty", ""},
		{"another network's policy", relayer.EVM, func(r *relayer.Relayer) { r.Policy = &relayer.SolanaPolicy{} },
			[]string{"policies"}, "must be the policy of the network type", ""},
		{"another network's policy with a problem", relayer.EVM, func(r *relayer.Relayer) {
			r.Policy = &relayer.StellarPolicy{MaxFee: new(int32(-1))}
			r.Name = ""
		}, []string{"name", "policies.max_fee", "policies"}, "", ""},
		{"bad UTF-8", relayer.EVM, func(r *relayer.Relayer) {
			r.Name, r.NotificationID = notUTF8, notUTF8
			r.Policy = &relayer.EVMPolicy{WhitelistReceivers: []string{"ok", notUTF8}}
		}, []string{"name", "notification_id", "policies.whitelist_receivers[1]"}, "must be UTF-8", ""},
		{"bad UTF-8 in fixed fields", relayer.EVM, func(r *relayer.Relayer) { r.ID, r.Network, r.SignerID = notUTF8, notUTF8, notUTF8 },
			[]string{"id", "network", "signer_id"}, "", relayer.ActionCreate},
		{"NUL", relayer.EVM, func(r *relayer.Relayer) {
			r.Name, r.NotificationID = "\x00", "a\x00"
			r.CustomRPCURLs[0].URL = "https://a.example/\x00"
		}, []string{"name", "notification_id", first}, "", ""},
		{"no URL", relayer.EVM, url("", ""), []string{first, "custom_rpc_urls[1].url"}, "must not be empty", ""},
		{"bad URL", relayer.EVM, url("ftp://x"), []string{first}, "must be an absolute http, https, ws or wss URL with a host", ""},
		{"bad UTF-8 in a URL", relayer.EVM, url("https://a.example/\xffKEY"), []string{first}, "", ""},
		{"weight NaN", relayer.EVM, weight(math.NaN()), []string{second}, notFinite, ""},
		{"weight +Inf", relayer.EVM, weight(math.Inf(1)), []string{second}, notFinite, ""},
		{"weight -Inf", relayer.EVM, weight(math.Inf(-1)), []string{second}, notFinite, ""},
		{"weight -0", relayer.EVM, weight(math.Copysign(0, -1)), []string{second}, notFinite, ""},
		{"weight over", relayer.EVM, weight(math.Nextafter(100, 101)), []string{second}, "must be at most 100", ""},
		{"weight under", relayer.EVM, weight(-math.SmallestNonzeroFloat64), []string{second}, "must be 0 or more", ""},
	}
}

// invalidUpdates are changes that only an update can make.
func invalidUpdates() (all []invalidValue) {
	const fixed = "cannot be changed"
	for _, c := range []struct {
		field, message string
		change         func(*relayer.Relayer)
	}{
		{"id", fixed, func(r *relayer.Relayer) { r.ID = "other" }},
		{"network", fixed, func(r *relayer.Relayer) { r.Network = "mainnet" }},
		{"network_type", fixed, func(r *relayer.Relayer) { r.NetworkType, r.Policy = relayer.Solana, nil }},
		{"signer_id", fixed, func(r *relayer.Relayer) { r.SignerID = "other" }},
		{"address", fixed, func(r *relayer.Relayer) { r.Address = "0x0" }},
		{"disabled_reason", "must be set while system_disabled is true", func(r *relayer.Relayer) { r.SystemDisabled = true }},
		{"disabled_reason", "must not be set while system_disabled is false", func(r *relayer.Relayer) {
			r.DisabledReason = &relayer.DisabledReason{Type: "x"}
		}},
		{"disabled_reason.type", "must not be empty", func(r *relayer.Relayer) {
			r.SystemDisabled, r.DisabledReason = true, &relayer.DisabledReason{}
		}},
	} {
		all = append(all, invalidValue{c.field + " " + c.message, relayer.EVM, c.change, []string{c.field}, c.message, relayer.ActionUpdate})
	}
	return all
}

func invalidSolanaPolicies() []invalidValue {
	solana := func(name string, policy relayer.SolanaPolicy, message string, want ...string) invalidValue {
		return invalidValue{name, relayer.Solana, func(r *relayer.Relayer) { r.Policy = &policy }, want, message, ""}
	}
	bad := notUTF8
	return []invalidValue{
		solana("Solana margin NaN", relayer.SolanaPolicy{FeeMarginPercentage: new(math.NaN())}, "", "policies.fee_margin_percentage"),
		solana("Solana margin Inf", relayer.SolanaPolicy{FeeMarginPercentage: new(math.Inf(-1))}, "", "policies.fee_margin_percentage"),
		solana("token slippage NaN", relayer.SolanaPolicy{AllowedTokens: []relayer.SolanaAllowedToken{
			{Mint: "m", SwapConfig: &relayer.TokenSwapConfig{SlippagePercentage: new(math.NaN())}},
		}}, "", "policies.allowed_tokens[0].swap_config.slippage_percentage"),
		solana("Solana under 0", relayer.SolanaPolicy{
			MaxAllowedFeeLamports: new(int64(-1)), MaxSignatures: new(int32(-1)), MaxTxDataSize: new(int32(math.MinInt32)), MinBalance: new(int64(math.MinInt64)),
		}, "must be 0 or more", "policies.max_allowed_fee_lamports", "policies.max_signatures", "policies.max_tx_data_size", "policies.min_balance"),
		solana("empty choices", relayer.SolanaPolicy{
			FeePaymentStrategy: new(relayer.FeePaymentStrategy("")),
			SwapConfig:         &relayer.SolanaSwapConfig{Strategy: new(relayer.SolanaSwapStrategy("")), JupiterSwapOptions: &relayer.JupiterSwapOptions{PriorityLevel: new(relayer.JupiterPriorityLevel("x"))}},
		}, "", "policies.fee_payment_strategy", "policies.swap_config.strategy", "policies.swap_config.jupiter_swap_options.priority_level"),
		solana("bad text in Solana", relayer.SolanaPolicy{
			AllowedAccounts: []string{bad}, AllowedPrograms: []string{bad}, DisallowedAccounts: []string{bad},
			AllowedTokens: []relayer.SolanaAllowedToken{{Mint: bad, Symbol: &bad}, {}},
			SwapConfig:    &relayer.SolanaSwapConfig{CronSchedule: &bad},
		}, "", "policies.allowed_accounts[0]", "policies.allowed_programs[0]", "policies.disallowed_accounts[0]", "policies.allowed_tokens[0].mint",
			"policies.allowed_tokens[0].symbol", "policies.allowed_tokens[1].mint", "policies.swap_config.cron_schedule"),
	}
}

func invalidStellarPolicies() []invalidValue {
	stellar := func(name string, policy relayer.StellarPolicy, message string, want ...string) invalidValue {
		return invalidValue{name, relayer.Stellar, func(r *relayer.Relayer) { r.Policy = &policy }, want, message, ""}
	}
	bad := notUTF8
	return []invalidValue{
		stellar("Stellar floats NaN", relayer.StellarPolicy{FeeMarginPercentage: new(math.NaN()), SlippagePercentage: new(math.Copysign(0, -1))},
			"must be a finite number, and not -0", "policies.fee_margin_percentage", "policies.slippage_percentage"),
		stellar("Stellar under 0", relayer.StellarPolicy{MaxFee: new(int32(-1)), MinBalance: new(int64(-1)), TimeoutSeconds: new(int64(-1))},
			"must be 0 or more", "policies.max_fee", "policies.min_balance", "policies.timeout_seconds"),
		stellar("bad text in Stellar", relayer.StellarPolicy{
			AllowedTokens: []relayer.StellarAllowedToken{
				{Asset: bad, Metadata: &relayer.StellarTokenMetadata{CanonicalAssetID: &bad, Kind: &relayer.StellarTokenKind{Classic: &relayer.StellarClassicAsset{Code: bad}}}},
				{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{Contract: &relayer.StellarContractToken{}}}},
			},
			SwapConfig: &relayer.StellarSwapConfig{CronSchedule: &bad, Strategies: []relayer.StellarSwapStrategy{"soroswap", ""}},
		}, "", "policies.allowed_tokens[0].asset", "policies.allowed_tokens[0].metadata.canonical_asset_id", "policies.allowed_tokens[0].metadata.kind.classic.code",
			"policies.allowed_tokens[0].metadata.kind.classic.issuer", "policies.allowed_tokens[1].metadata.kind.contract.contract_id",
			"policies.swap_config.cron_schedule", "policies.swap_config.strategies[1]"),
		stellar("both kinds", relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &relayer.StellarTokenKind{
			Classic: &relayer.StellarClassicAsset{Code: "c", Issuer: "i"}, Contract: &relayer.StellarContractToken{ContractID: "c"},
		}}}}}, "", "policies.allowed_tokens[0].metadata.kind.contract"),
	}
}

// A nil pointer to the policy of the network type means that there is no policy. A type that
// embeds a policy implements Policy, but its fields would not be stored.
func TestCreate_PolicyOfNetworkType(t *testing.T) {
	for _, policy := range []relayer.Policy{nil, (*relayer.EVMPolicy)(nil)} {
		req := minimal("")
		req.Policy = policy
		if r := mustCreate(t, newManager(t), req); !reflect.DeepEqual(r.Policy, &relayer.EVMPolicy{}) {
			t.Errorf("%T: policies %#v", policy, r.Policy)
		}
	}
	type own struct{ *relayer.EVMPolicy }
	for _, policy := range []relayer.Policy{
		(*relayer.SolanaPolicy)(nil), (*relayer.StellarPolicy)(nil), (*relayer.UnknownPolicy)(nil), &relayer.UnknownPolicy{Type: "fictional"},
		own{&relayer.EVMPolicy{EIP1559Pricing: new(true)}},
	} {
		req := minimal("")
		req.Policy = policy
		wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), req))), "policies")
	}
	for _, policy := range []relayer.Policy{&relayer.UnknownPolicy{Type: "fictional"}, &relayer.EVMPolicy{}, own{}} {
		req := minimal("")
		req.NetworkType, req.Policy = "fictional", policy
		wantFields(t, fieldErrors(t, second(newManager(t, relayer.WithNetworkRules()).Create(t.Context(), req))), "network_type")
	}
	for want, policy := range map[relayer.NetworkType]relayer.Policy{relayer.EVM: &relayer.EVMPolicy{}, relayer.Solana: &relayer.SolanaPolicy{}, relayer.Stellar: &relayer.StellarPolicy{}} {
		if got := policy.NetworkType(); got != want {
			t.Errorf("%T is a policy of %q, want %q", policy, got, want)
		}
	}
}

// Defaults are not written into the request of the caller. A change of the request, or of a relayer
// that was read, does not change what is stored.
func TestCreate_StoredCopyIsIndependent(t *testing.T) {
	request := func() (req relayer.CreateRequest) {
		mustSucceed(t, json.Unmarshal([]byte(without(t, fullRelayers[1].request, "policies.fee_payment_strategy")), &req))
		return req
	}
	// spoil writes into the lists, and through the pointers, of a policy and its endpoints.
	spoil := func(endpoints []relayer.RPCConfig, policy relayer.Policy) {
		endpoints[0].URL, *endpoints[0].Weight = "https://spoiled.example", 99
		mustSucceed(t, json.Unmarshal([]byte(`{"allowed_accounts":["spoiled"],"min_balance":99,"swap_config":{"strategy":"noop"},"fee_payment_strategy":"relayer",`+
			`"allowed_tokens":[{"mint":"spoiled","decimals":99,"swap_config":{"min_amount":99}}]}`), policy))
	}
	m := newManager(t)
	req := request()
	created := mustCreate(t, m, req)
	if !reflect.DeepEqual(req, request()) {
		t.Errorf("Create changed its request to %#v", req)
	}
	pristine, document := mustGet(t, m, req.ID), storedDocument(t, m, req.ID)

	spoil(req.CustomRPCURLs, req.Policy)
	if reflect.DeepEqual(req, request()) || !reflect.DeepEqual(created, pristine) {
		t.Error("the created relayer shares memory with the request")
	}
	for _, r := range []*relayer.Relayer{created, mustGet(t, m, req.ID), allOf(t, m, relayer.Selector{})[0]} {
		spoil(r.CustomRPCURLs, r.Policy)
	}
	if again := mustGet(t, m, req.ID); !reflect.DeepEqual(again, pristine) || storedDocument(t, m, req.ID) != document {
		t.Errorf("stored %#v, want %#v", again, pristine)
	}
}

// TestStates_Transitions makes every call in every state.
func TestStates_Transitions(t *testing.T) {
	first := relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "rpc timed out"}
	other := relayer.DisabledReason{Type: "HostsOwn", Details: ""}
	type state struct {
		paused bool
		reason *relayer.DisabledReason
	}
	calls := map[string]struct {
		call  operation
		after func(state) state
	}{
		"pause":                      {(*relayer.Manager).Pause, func(s state) state { return state{true, s.reason} }},
		"resume":                     {(*relayer.Manager).Resume, func(s state) state { return state{false, s.reason} }},
		"disable":                    {disabling(first), func(s state) state { return state{s.paused, &first} }},
		"disable for another reason": {disabling(other), func(s state) state { return state{s.paused, &other} }},
		"enable":                     {(*relayer.Manager).Enable, func(s state) state { return state{s.paused, nil} }},
	}
	for _, from := range []state{{false, nil}, {true, nil}, {false, &first}, {true, &first}, {false, &other}, {true, &other}} {
		for name, c := range calls {
			t.Run(fmt.Sprintf("%s from paused=%t disabled=%t", name, from.paused, from.reason != nil), func(t *testing.T) {
				m := registry(t)
				before := must(updating(func(r *relayer.Relayer) {
					r.Paused, r.SystemDisabled, r.DisabledReason = from.paused, from.reason != nil, from.reason
				})(m, t.Context(), "evm"))(t)
				got := must(c.call(m, t.Context(), "evm", relayer.Reason("why")))(t)
				want := c.after(from)
				if got.Paused != want.paused || got.SystemDisabled != (want.reason != nil) || !reflect.DeepEqual(got.DisabledReason, want.reason) {
					t.Errorf("got paused=%t disabled=%t reason=%v", got.Paused, got.SystemDisabled, got.DisabledReason)
				}
				isSame := reflect.DeepEqual(want, from)
				if (got.Revision == before.Revision) != isSame || isSame != reflect.DeepEqual(got, before) {
					t.Errorf("was %v\nis  %v, want the same: %t", before, got, isSame)
				}
				if stored := mustGet(t, m, "evm"); !reflect.DeepEqual(stored, got) {
					t.Errorf("returned %+v\nstored   %+v", got, stored)
				}
			})
		}
	}
}

func TestOperations_UnknownID(t *testing.T) {
	m := registry(t)
	for _, id := range []string{"nobody", "", "a b", "A", "evm ", "a/../a", strings.Repeat("a", 65), "\xff", "a\x00"} {
		for name, call := range operationsOn {
			if r, err := call(m, t.Context(), id); !errors.Is(err, relayer.ErrNotFound) || r != nil {
				t.Errorf("%q, %s: %v, %v", id, name, r, err)
			}
		}
	}
}

// Health checks pass the text of an error, which quotes the URL with its key.
func TestDisable_URLsMasked(t *testing.T) {
	m := registry(t)
	const key = "PATHKEY"
	failed := &url.Error{Op: "Post", URL: "https://rpc.example/v2/" + key, Err: errors.New("wss://u:" + key + "@ws.example refused, no host 0123456789abcdef" + key + ".rpc.example")}
	reason := relayer.DisabledReason{Type: relayer.DisabledReasonType("https://rpc.example/" + key), Details: failed.Error()}
	want := relayer.DisabledReason{Type: "https://rpc.example/***", Details: `Post "https://rpc.example/***": wss://ws.example refused, no host ***.rpc.example`}
	update := updating(func(r *relayer.Relayer) { r.SystemDisabled, r.DisabledReason = true, &reason })
	for id, call := range map[string]operation{"evm": disabling(reason), "solana": update} {
		r := must(call(m, t.Context(), id))(t)
		if *r.DisabledReason != want || strings.Contains(storedDocument(t, m, id), key) {
			t.Errorf("the reason is %+v, want %+v", *r.DisabledReason, want)
		}
		if again := must(call(m, t.Context(), id))(t); again.Revision != r.Revision {
			t.Errorf("the same reason again: %v", again)
		}
	}
	if !strings.Contains(reason.Details, key) {
		t.Error("the reason of the caller was changed")
	}
	grows := relayer.DisabledReason{Type: relayer.DisabledReasonType(strings.Repeat("RPC rpc.example/ab ", 13))}
	must(m.Disable(t.Context(), "evm", grows))(t)
	must(updating(func(r *relayer.Relayer) { r.Name = "New" })(m, t.Context(), "evm"))(t)
}

// The switches, a delete, and a change to comply must work even if stricter rules apply since the
// relayer was stored.
func TestWrites_AfterRulesChanged(t *testing.T) {
	stored := withURLs("r", "https://a.example", "http://127.0.0.1:8545")
	stored.Policy = &relayer.EVMPolicy{WhitelistReceivers: []string{"nobody"}}
	stored.Settings = []byte(`{"old":1}`)
	for field, c := range map[string]struct {
		option relayer.Option
		comply string
	}{
		"policies.whitelist_receivers[0]": {relayer.WithNetworkRules(), `"policies":null`},
		"custom_rpc_urls[1].url":          {relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}), `"custom_rpc_urls":[{"url":"https://a.example"}]`},
		"settings.old":                    {relayer.WithSettings[engineSettings](), `"settings":{"old":null}`},
	} {
		eachStore(t, func(t *testing.T, store relayer.Store) {
			mustCreate(t, managerOf(t, store), stored)
			strict := managerOf(t, store, c.option)
			for _, write := range []operation{
				(*relayer.Manager).Pause, (*relayer.Manager).Resume, patchingDocument(`{"paused":true}`), patching(`{"paused":false}`),
				disabling(relayer.DisabledReason{Type: relayer.RPCValidationFailed}), (*relayer.Manager).Enable,
			} {
				must(write(strict, t.Context(), "r"))(t)
			}
			for _, write := range []operation{updating(func(r *relayer.Relayer) { r.Name = "x" }), patching(`{"name":"x"}`)} {
				wantFields(t, fieldErrors(t, second(write(strict, t.Context(), "r"))), field)
			}
			for _, write := range []operation{patching(`{"name":"x",` + c.comply + `}`), deleting} {
				must(write(strict, t.Context(), "r"))(t)
			}
		})
	}
}

func TestIfRevision(t *testing.T) {
	m := registry(t)
	first := mustGet(t, m, "evm").Revision
	paused := must(m.Pause(t.Context(), "evm", relayer.IfRevision(first)))(t)
	rename, old := updating(func(r *relayer.Relayer) { r.Name = "changed" }), relayer.IfRevision(first)
	for name, c := range map[string]struct {
		call    operation
		options []relayer.WriteOption
		want    error
	}{
		"update":           {rename, []relayer.WriteOption{old}, relayer.ErrConflict},
		"resume":           {(*relayer.Manager).Resume, []relayer.WriteOption{old}, relayer.ErrConflict},
		"pause, no change": {(*relayer.Manager).Pause, []relayer.WriteOption{old}, relayer.ErrConflict},
		"no revision":      {(*relayer.Manager).Pause, []relayer.WriteOption{relayer.IfRevision()}, relayer.ErrConflict},
		"patch":            {patchingDocument(`{"name":"changed"}`), []relayer.WriteOption{old}, relayer.ErrConflict},
		"delete":           {deleting, []relayer.WriteOption{old}, relayer.ErrConflict},
		"revision 0":       {(*relayer.Manager).Pause, []relayer.WriteOption{relayer.IfRevision(0)}, relayer.ErrNoRevision},
		"0 and current":    {patching(`{"name":"changed"}`), []relayer.WriteOption{relayer.IfRevision(0, paused.Revision)}, relayer.ErrNoRevision},
		"0 and another":    {deleting, []relayer.WriteOption{old, relayer.IfRevision(0)}, relayer.ErrNoRevision},
	} {
		_, err := c.call(m, t.Context(), "evm", c.options...)
		if !errors.Is(err, c.want) || errors.Is(err, relayer.ErrConflict) && errors.Is(err, relayer.ErrNoRevision) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if r := mustGet(t, m, "evm"); !reflect.DeepEqual(r, paused) {
		t.Errorf("changed to %+v", r)
	}
	renamed := must(rename(m, t.Context(), "evm", relayer.IfRevision(first, paused.Revision)))(t)
	mustSucceed(t, m.Delete(t.Context(), "evm", relayer.IfRevision(renamed.Revision)))
}

func TestUpdate_Concurrent(t *testing.T) { eachStore(t, testNoUpdateIsLost) }

func testNoUpdateIsLost(t *testing.T, store relayer.Store) {
	m := registryOn(t, store)
	var writers sync.WaitGroup
	for i := range 64 {
		writers.Go(func() {
			_, err := updating(func(r *relayer.Relayer) {
				policy := r.Policy.(*relayer.EVMPolicy)
				policy.WhitelistReceivers = append(policy.WhitelistReceivers, fmt.Sprintf("0x%02d", i))
			})(m, t.Context(), "evm")
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	receivers := mustGet(t, m, "evm").Policy.(*relayer.EVMPolicy).WhitelistReceivers
	slices.Sort(receivers)
	if len(slices.Compact(receivers)) != 64 {
		t.Errorf("%d receivers: %v", len(receivers), receivers)
	}
}

func TestUpdate_RetriesExhausted(t *testing.T) {
	m := managerOf(t, hooked{Store: memory.New(), before: func(_ context.Context, call, _ string) error {
		if call == "update" || call == "delete" { // another writer is always faster
			return relayer.ErrConflict
		}
		return nil
	}})
	mustCreate(t, m, minimal("r"))
	for name, call := range map[string]operation{"pause": (*relayer.Manager).Pause, "patch": patchingDocument(`{"name":"m"}`), "delete": deleting} {
		if _, err := call(m, t.Context(), "r"); !errors.Is(err, relayer.ErrConflict) || !strings.Contains(err.Error(), "gave up after 200 attempts: try again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Pause(ctx, "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// A URL that equals the mask of a stored one is a mask, even if it has no mark. A stored URL that
// equals the mask of another must not permit that mask.
func TestPatch_MaskedURLs(t *testing.T) {
	const secret, bare, port = "https://u:SECRET@h.example/", "https://h.example/", "https://u:SECRET@h.example:8545/"
	first, second := []string{"custom_rpc_urls[0].url"}, []string{"custom_rpc_urls[1].url"}
	for _, c := range []struct {
		stored   []string
		patched  []string
		rejected []string // the fields
	}{
		{[]string{secret, bare}, []string{bare, bare}, second},
		{[]string{bare, secret}, []string{bare, bare}, second},
		{[]string{secret, bare}, []string{bare}, nil},
		{[]string{secret}, []string{"https://h.example"}, first},
		{[]string{secret}, []string{"HTTPS://H.EXAMPLE/"}, first},
		{[]string{secret}, []string{"https://H.example:443"}, first},
		{[]string{port}, []string{"https://h.example:8545"}, first},
		{[]string{secret}, []string{"https://h.example/?"}, first},
		{[]string{secret}, []string{"https://h.example#"}, first},
		{[]string{"https://u:SECRET@bücher.example/"}, []string{"https://b%C3%BCcher.example"}, first},
		{[]string{"https://u:SECRET@b%C3%BCcher.example:443/"}, []string{"https://bücher.example"}, first},
		{[]string{secret}, []string{"https://h.example/%3F"}, nil},
		{[]string{"https://h.example/KEY"}, []string{bare}, nil},
		{[]string{bare}, []string{"https://h.example"}, nil},
		{[]string{secret}, []string{"https://h.example/?key=KEY"}, nil},
		{[]string{secret}, []string{"https://h.example/#f"}, nil},
		{[]string{secret}, []string{"https://h.example/v2"}, nil},
		{[]string{secret}, []string{"https://other:KEY@h.example/"}, nil},
		{[]string{secret}, []string{"https://h.example:8545/"}, nil},
		{[]string{secret}, []string{"http://h.example:443/"}, nil},
	} {
		t.Run(fmt.Sprint(c.stored, " ", c.patched), func(t *testing.T) {
			m := newManager(t)
			before := mustCreate(t, m, withURLs("r", c.stored...))
			_, err := m.Patch(t.Context(), "r", patchOfURLs(t, withURLs("", c.patched...).CustomRPCURLs))
			if c.rejected == nil {
				mustSucceed(t, err)
				return
			}
			wantFields(t, fieldErrors(t, err), c.rejected...)
			if after := mustGet(t, m, "r"); !reflect.DeepEqual(after, before) {
				t.Errorf("was %v\nis  %v", before, after)
			}
		})
	}
}

func TestPatch_FixedAndUnknownMembers(t *testing.T) {
	_, err := registry(t).Documents().Patch(t.Context(), "evm", []byte(`{"id":"x","network":"y","network_type":null,"signer_id":"s-evm","address":1,`+
		`"system_disabled":false,"disabled_reason":{},"revision":1,"policies":{"id":1}}`))
	var want []relayer.FieldError
	for _, field := range []string{"id", "network", "network_type", "signer_id", "address", "system_disabled", "disabled_reason"} {
		want = append(want, relayer.FieldError{Field: field, Message: "cannot be changed", Code: "immutable"})
	}
	for _, field := range []string{"revision", "policies.id"} {
		want = append(want, relayer.FieldError{Field: field, Message: "is not a known field", Code: "unknown_field"})
	}
	if got := fieldErrors(t, err); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// No call stores a masked URL. One that is stored already does not prevent other changes.
func TestMaskedURL_NeverStored(t *testing.T) {
	m := registry(t)
	for _, masked := range []string{
		"https://x.example/***", "wss://x.example:8545/***", "https://x.example/v2/***", "https://x.example/%2A%2A%2A", "https://x.example/***?", "https://x.example/***#f",
		"https://x.example/***?k=v", "https://x.example?***", "https://***@x.example/v2/KEY", "https://***.eth.x.example", "https://***.eth.x.example./v2/KEY",
		"https://a.***.x.example:8545/", "https://***:***@x.example", mustGet(t, m, "evm").CustomRPCURLs[0].URL.Unmasked() + "/***",
	} {
		req := withURLs("new", masked)
		list := `"custom_rpc_urls":[{"url":` + treeText(t, masked) + `}]`
		for call, err := range map[string]error{
			"Create":         second(m.Create(t.Context(), req)),
			"CreateDocument": second(m.Documents().Create(t.Context(), []byte(evmBody(list)))),
			"Patch":          second(m.Patch(t.Context(), "evm", []byte("{"+list+"}"))),
			"Update":         second(updating(func(r *relayer.Relayer) { r.CustomRPCURLs = req.CustomRPCURLs })(m, t.Context(), "evm")),
		} {
			problems := fieldErrors(t, err)
			if problems[0] != (relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must be the full URL, not the masked one that responses show"}) {
				t.Errorf("%s of %s: %+v", call, masked, problems)
			}
		}
		if !relayer.RPCURL(masked).IsMasked() {
			t.Errorf("%s is not taken for a mask", masked)
		}
	}
	for _, full := range []relayer.RPCURL{"https://x.example", "https://x.example/", "https://x.example/**", "https://**.x.example", "https://a***.x.example", "https://x.example/a***", "https://x.example?a=***", "***x://"} {
		if full.IsMasked() {
			t.Errorf("%s is taken for a mask", full.Unmasked())
		}
	}
	if !relayer.RPCURL(relayer.RPCURL("no URL").String()).IsMasked() {
		t.Error("the mask of text that is no URL is not recognized")
	}
}

// An earlier version stored hosts that are refused now, and showed more of them.
func TestMaskedURL_OfRefusedHost(t *testing.T) {
	m := managerOf(t, storeOf(t, relayer.Record{ID: "a",
		Document: []byte(evmBody(`"id":"a"`, `"custom_rpc_urls":[{"url":"https://h+i.example/***","weight":1}]`, `"policies":{}`)),
		Private:  []byte(`{"custom_rpc_urls":[{"url":"https://h+i.example/KEY","weight":1}]}`)}))
	page := must(m.List(t.Context(), relayer.ListQuery{}))(t)
	if urls := page.Relayers[0].CustomRPCURLs; len(urls) != 1 || urls[0].URL.Unmasked() != "https://h+i.example/KEY" {
		t.Errorf("endpoints %v", urls)
	}
}

func TestMaskedURL_StoredBefore(t *testing.T) {
	m := managerOf(t, storeOf(t, relayer.Record{ID: "a",
		Document: []byte(evmBody(`"id":"a"`, `"custom_rpc_urls":[{"url":"https://h.example/***","weight":1}]`, `"policies":{}`)),
		Private:  []byte(`{"custom_rpc_urls":[{"url":"https://h.example/***","weight":1}]}`)}))
	for _, body := range []string{`{"name":"m"}`, `{"custom_rpc_urls":[{"url":"https://h.example/***","weight":2}]}`} {
		must(m.Patch(t.Context(), "a", []byte(body)))(t)
	}
	twice := `{"custom_rpc_urls":[{"url":"https://h.example/***"},{"url":"https://h.example/***"}]}`
	wantFields(t, fieldErrors(t, second(m.Documents().Patch(t.Context(), "a", []byte(twice)))), "custom_rpc_urls[1].url")
}

// A patch must not write through what the decoded relayer refers to: the comparison with the stored
// relayer would then find no change.
func TestPatch_EveryPolicyField(t *testing.T) {
	for _, full := range fullRelayers {
		m := newFullManager(t)
		id := mustCreateDocument(t, m, full.request).ID
		var change func(path string, object map[string]any, patchOf func(any) any)
		change = func(path string, object map[string]any, patchOf func(any) any) {
			for name, value := range object {
				field, patchOf := path+"."+name, func(value any) any { return patchOf(map[string]any{name: value}) }
				values := []any{nil}
				switch value := value.(type) {
				case bool:
					values = append(values, !value)
				case json.Number:
					values = append(values, 17)
				case map[string]any:
					change(field, value, patchOf)
				}
				for _, value := range values {
					patch := must(json.Marshal(map[string]any{"policies": patchOf(value)}))(t)
					r := must(m.Patch(t.Context(), id, patch, relayer.DryRun()))(t)
					isOther := func(path string) bool { return path != field && !strings.HasPrefix(path, field+".") }
					if changed := r.LastChange.Changed; len(changed) == 0 || slices.ContainsFunc(changed, isOther) {
						t.Errorf("%s = %v of %s changes %q", field, value, id, changed)
					}
				}
			}
		}
		document := parseTree(t, full.document).(map[string]any)
		change("policies", document["policies"].(map[string]any), func(value any) any { return value })
		if storedDocument(t, m, id) != full.document {
			t.Errorf("a dry run stored %s", storedDocument(t, m, id))
		}
	}
}

// A patch of paused alone is a pause, however its JSON is written.
func TestPatchDocument_Action(t *testing.T) {
	tests := map[string]relayer.Action{
		`{"paused":true}`:                  relayer.ActionPause,
		" { \"paused\" : false } ":         relayer.ActionResume,
		`{"pa\u0075sed":true}`:             relayer.ActionPause,
		`{"paused":true,"paused":true}`:    relayer.ActionUpdate,
		`{"paused":true,"name":"renamed"}`: relayer.ActionUpdate,
		`{"name":"n","paused":false}`:      relayer.ActionUpdate,
		`{"Paused":true}`:                  relayer.ActionUpdate,
		`{"paused":true} {}`:               relayer.ActionUpdate,
		`{"paused":"true"}`:                relayer.ActionUpdate,
		`{}`:                               relayer.ActionUpdate,
	}
	for body, want := range tests {
		var got relayer.Action
		m := newManager(t, atEnd(func(operation relayer.Operation, _ error) { got = operation.Action }))
		mustCreate(t, m, minimal("a"))
		_, _ = m.Documents().Patch(t.Context(), "a", []byte(body))
		if got != want {
			t.Errorf("%s is %s, want %s", body, got, want)
		}
	}
}

// A pause and a disable store what an update of the same fields stores.
func TestSwitches_SameRecordAsUpdate(t *testing.T) {
	reason := relayer.DisabledReason{Type: "x", Details: "https://rpc.example/KEY <&> é"}
	steps := []struct{ write, update operation }{
		{(*relayer.Manager).Pause, updating(func(r *relayer.Relayer) { r.Paused = true })},
		{disabling(reason), updating(func(r *relayer.Relayer) { r.SystemDisabled, r.DisabledReason = true, &reason })},
		{(*relayer.Manager).Resume, updating(func(r *relayer.Relayer) { r.Paused = false })},
		{(*relayer.Manager).Enable, updating(func(r *relayer.Relayer) { r.SystemDisabled, r.DisabledReason = false, nil })},
	}
	for _, full := range fullRelayers {
		one, other := memory.New(), memory.New()
		options := []relayer.Option{relayer.WithExclusiveSigners(), refuseNothing}
		m, updated := managerOf(t, one, options...), managerOf(t, other, options...)
		id := mustCreateDocument(t, m, full.request).ID
		mustCreateDocument(t, updated, full.request)
		for _, store := range []relayer.Store{one, other} {
			editRecord(t, store, id, func(rec *relayer.Record) { // a member of a newer version
				rec.Document = append(bytes.TrimSuffix(bytes.Clone(rec.Document), []byte("}")), `,"newer":{"a": [1]}}`...)
			})
		}
		for i, step := range steps {
			must(step.write(m, t.Context(), id))(t)
			must(step.update(updated, t.Context(), id))(t)
			got, want := storedRecord(t, one, id), storedRecord(t, other, id)
			if got.Note = want.Note; !reflect.DeepEqual(got, want) {
				t.Errorf("step %d of %s:\ngot  %v\nwant %v", i, id, got, want)
			}
			if found := checked(t, m); len(found) != 0 {
				t.Errorf("step %d of %s: Check found %q", i, id, found)
			}
		}
	}
}

// A repeated pause changes nothing, even if another program wrote the document in another form.
func TestPause_RepeatedInOtherForm(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	id := mustCreateDocument(t, m, fullRelayers[0].request).ID
	must(m.Pause(t.Context(), id))(t)
	stored := editRecord(t, store, id, func(rec *relayer.Record) {
		rec.Document = bytes.Replace(rec.Document, []byte(`"paused":true`), []byte(`"paused": true`), 1)
	})
	must(m.Pause(t.Context(), id))(t)
	if got := storedRecord(t, store, id); got.Revision != stored.Revision {
		t.Errorf("revision %d, want %d", got.Revision, stored.Revision)
	}
}

// unreadable is a store that cannot read some records, but can delete them. The result of a
// delete is that of the function.
func unreadable(store relayer.Store, deletes func() error, ids ...string) relayer.Store {
	return hooked{
		Store: store,
		before: func(_ context.Context, call, id string) error {
			if call == "get" && slices.Contains(ids, id) {
				return fmt.Errorf("%w: %s", relayer.ErrCorrupt, id)
			}
			return nil
		},
		after: func(_ context.Context, call string, err error) error {
			if call == "delete" {
				return deletes()
			}
			return err
		},
	}
}

// A damaged relayer is deleted without a condition and an admission, if the store can.
func TestDelete_DamagedRecord(t *testing.T) {
	for name, c := range map[string]struct {
		store      error // of its Delete
		options    []relayer.Option
		conditions []relayer.WriteOption
		calls      int
		want       error
	}{
		"deleted":        {calls: 1},
		"not supported":  {store: relayer.ErrConflict, calls: 1, want: relayer.ErrCorrupt},
		"disk is full":   {store: relayer.ErrUnavailable, calls: 1, want: relayer.ErrUnavailable},
		"with condition": {conditions: []relayer.WriteOption{relayer.IfRevision(1)}, want: relayer.ErrCorrupt},
		"with admission": {options: []relayer.Option{refuseNothing}, want: relayer.ErrCorrupt},
		"dry run":        {conditions: []relayer.WriteOption{relayer.DryRun()}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			store := unreadable(memory.New(), func() error {
				calls++
				return c.store
			}, "damaged")
			err := managerOf(t, store, c.options...).Delete(t.Context(), "damaged", c.conditions...)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || calls != c.calls {
				t.Errorf("error is %v after %d deletes, want %v after %d", err, calls, c.want, c.calls)
			}
		})
	}
}

// A done context does not hide that a write may have taken effect.
func TestWrites_UnknownOutcomeAndDoneContext(t *testing.T) {
	create := func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Create(ctx, minimal("new"), options...)
	}
	for name, write := range map[string]operation{
		"create": create, "update": updating(func(r *relayer.Relayer) { r.Name = "m" }), "patch": patching(`{"name":"m"}`),
		"pause": (*relayer.Manager).Pause, "disable": disabling(relayer.DisabledReason{Type: "x"}), "delete": deleting,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				registryOn(t, store)
				late := hooked{Store: store, after: func(ctx context.Context, call string, err error) error {
					if err != nil || call == "get" {
						return err
					}
					<-ctx.Done()
					// A store may read back what it could not confirm, and find its own write.
					return fmt.Errorf("%w: %w: %w", relayer.ErrOutcomeUnknown, ctx.Err(), relayer.ErrConflict)
				}}
				var observed error
				m := managerOf(t, late, atEnd(func(_ relayer.Operation, err error) { observed = err }))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := write(m, ctx, "evm")
				if !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) || observed != err {
					t.Errorf("got %v, observed %v", err, observed)
				}
			})
		})
	}
}

// fleet creates the relayers r-000, r-001 and so on. Every third one is of the team risk, the others
// are of payments.
func fleet(t testing.TB, store relayer.Store, count int, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m := managerOf(t, store, options...)
	for i := range count {
		req := minimal(fmt.Sprintf("r-%03d", i))
		req.Labels = map[string]string{"team": "payments"}
		if i%3 == 0 {
			req.Labels["team"] = "risk"
		}
		mustCreate(t, m, req)
	}
	return m
}

var ofPayments = relayer.Selector{}.Where("label.team", "payments")

// pausedIDs returns the IDs of the paused relayers.
func pausedIDs(t testing.TB, m *relayer.Manager) []string {
	t.Helper()
	return idsOf(allOf(t, m, relayer.Selector{}.Where("paused", "true")))
}

// wantBulk returns a function that checks the result of a call.
func wantBulk(result relayer.BulkResult, err error) func(t testing.TB, changed, unchanged int) relayer.BulkResult {
	return func(t testing.TB, changed, unchanged int) relayer.BulkResult {
		t.Helper()
		if err != nil || result.Changed != changed || result.Unchanged != unchanged || len(result.Failed) > 0 || result.RequestID == "" {
			t.Errorf("the result is %+v, error %v, want %d changed and %d unchanged", result, err, changed, unchanged)
		}
		return result
	}
}

// Each relayer of the selection is a change of its own, in the history and the feed, with the request
// ID and the reason.
func TestPauseAll(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := fleet(t, store, 250)
		must(m.Pause(t.Context(), "r-001"))(t)
		page := must(m.List(t.Context(), relayer.ListQuery{}))(t)
		ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "ann", RequestID: "request-1"})
		wantBulk(m.PauseAll(ctx, ofPayments, relayer.DryRun()))(t, 165, 1)
		if ids := pausedIDs(t, m); len(ids) != 1 {
			t.Errorf("a dry run has paused %q", ids)
		}
		result := wantBulk(m.PauseAll(ctx, ofPayments, relayer.Reason("incident 42")))(t, 165, 1)
		if result.RequestID != "request-1" {
			t.Errorf("the request ID is %q", result.RequestID)
		}
		if ids := pausedIDs(t, m); len(ids) != 166 || slices.Contains(ids, "r-000") {
			t.Errorf("paused are %d: %q", len(ids), ids)
		}
		seen := make(map[string]bool)
		for change, err := range m.Watch(t.Context(), relayer.WatchQuery{After: page.Position}) {
			mustSucceed(t, err)
			past, _, err := m.History(t.Context(), relayer.HistoryQuery{ID: change.ID, Limit: 1})
			if err != nil && !errors.Is(err, errors.ErrUnsupported) { // a map has no history
				t.Fatal(err)
			}
			infos := []relayer.ChangeInfo{change.Info, change.Relayer.LastChange}
			for _, change := range past {
				infos = append(infos, change.Info)
			}
			for _, info := range infos {
				if info.Actor != "ann" || info.Action != relayer.ActionPause || info.Reason != "incident 42" || info.RequestID != "request-1" || !slices.Equal(info.Changed, []string{"paused"}) {
					t.Fatalf("the change of %s is %+v", change.ID, info)
				}
			}
			if seen[change.ID] = true; len(seen) == 165 {
				break
			}
		}
		wantBulk(m.PauseAll(t.Context(), ofPayments))(t, 0, 166)
		wantBulk(m.ResumeAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()))(t, 166, 84)
		if ids := pausedIDs(t, m); len(ids) != 0 {
			t.Errorf("still paused: %q", ids)
		}
	})
}

// A selection that is empty by mistake changes nothing, and options that have no meaning are errors.
func TestPauseAll_InvalidOptions(t *testing.T) {
	m := fleet(t, memory.New(), 3)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"nothing selected": func() error { return second(m.PauseAll(ctx, relayer.Selector{})) },
		"invalid selector": func() error {
			return second(m.PauseAll(ctx, relayer.Selector{}.Where("x", "y"), relayer.AllRelayers()))
		},
		"revision":             func() error { return second(m.PauseAll(ctx, ofPayments, relayer.IfRevision(1))) },
		"reason of two lines":  func() error { return second(m.PauseAll(ctx, ofPayments, relayer.Reason("a\nb"))) },
		"no request":           func() error { return second(m.ResumeAll(ctx, ofPayments, relayer.PausedBy(""))) },
		"a longer request":     func() error { return second(m.ResumeAll(ctx, ofPayments, relayer.PausedBy(strings.Repeat("x", 129)))) },
		"a request with a tab": func() error { return second(m.ResumeAll(ctx, ofPayments, relayer.PausedBy("a\tb"))) },
		"pause of a request":   func() error { return second(m.PauseAll(ctx, ofPayments, relayer.PausedBy("x"))) },
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			if fieldErrors(t, err); !strings.HasPrefix(err.Error(), "relayer: pause") && !strings.HasPrefix(err.Error(), "relayer: resume") {
				t.Errorf("the error is %v", err)
			}
			if ids := pausedIDs(t, m); len(ids) > 0 {
				t.Errorf("paused are %q", ids)
			}
		})
	}
	wantBulk(m.PauseAll(ctx, relayer.Selector{}.Where("id")))(t, 0, 0)
}

// What a request has paused is resumed, whatever else was changed since.
func TestResumeAll_PausedBy(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m, ctx := fleet(t, store, 30), t.Context()
		other := relayer.WithActor(ctx, relayer.Actor{RequestID: "another"})
		must(m.Pause(other, "r-001"))(t) // before
		paused := wantBulk(m.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers()))(t, 29, 1)
		if other := must(m.PauseAll(ctx, ofPayments))(t); other.RequestID == paused.RequestID {
			t.Fatalf("another pause has the request ID %q", other.RequestID)
		}
		for _, id := range []string{"r-002", "r-003"} {
			must(m.Resume(ctx, id))(t)
		}
		must(m.Pause(other, "r-003"))(t) // again, by another request
		for _, change := range []operation{disabling(relayer.DisabledReason{Type: "x"}), patching(`{"name":"other"}`), patching(`{"labels":{"team":"new"}}`)} {
			must(change(m, ctx, "r-004"))(t)
		}
		resumed := wantBulk(m.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.PausedBy(paused.RequestID)))(t, 27, 3)
		if ids := pausedIDs(t, m); !slices.Equal(ids, []string{"r-001", "r-003"}) {
			t.Errorf("still paused: %q", ids)
		}
		if info := mustGet(t, m, "r-004").LastChange; info.Action != relayer.ActionResume || info.RequestID != resumed.RequestID {
			t.Errorf("the last change is %+v", info)
		}
		wantBulk(m.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.PausedBy(paused.RequestID)))(t, 0, 30)
	})
}

// A repetition with the same request ID has the counts of the whole.
func TestPauseAll_SameRequestID(t *testing.T) {
	m := fleet(t, memory.New(), 30)
	ctx := relayer.WithActor(t.Context(), relayer.Actor{RequestID: "request-1"})
	for range 2 {
		wantBulk(m.PauseAll(ctx, ofPayments))(t, 20, 0)
	}
	ctx = relayer.WithActor(t.Context(), relayer.Actor{RequestID: "request-2"})
	must(m.Patch(ctx, "r-000", []byte(`{"name":"other"}`)))(t) // not a resume
	for range 2 {
		wantBulk(m.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers()))(t, 20, 10)
	}
}

// A relayer that is changed between its read and its write is judged again.
func TestPauseAll_ChangedMeanwhile(t *testing.T) {
	inner := memory.New()
	other := fleet(t, inner, 6) // 1, 2, 4 and 5 are of payments
	var once [6]sync.Once
	m := managerOf(t, beforeUpdate(inner, func(id string) (err error) {
		change := map[string]operation{
			"r-001": patching(`{"labels":{"team":"risk"}}`), "r-002": deleting, "r-004": (*relayer.Manager).Pause, "r-005": patching(`{"name":"other"}`),
		}[id]
		once[id[4]-'0'].Do(func() { err = second(change(other, t.Context(), id, relayer.Reason("first"))) })
		return err
	}))
	wantBulk(m.PauseAll(t.Context(), ofPayments, relayer.Reason("second")))(t, 1, 1)
	if ids := pausedIDs(t, m); !slices.Equal(ids, []string{"r-004", "r-005"}) {
		t.Errorf("paused are %q", ids)
	}
	if first, r := mustGet(t, m, "r-004"), mustGet(t, m, "r-005"); first.LastChange.PausedBy.Reason != "first" || r.Name != "other" || r.LastChange.PausedBy.Reason != "second" {
		t.Errorf("r-004 is %+v, r-005 is %+v", first, r)
	}
}

// One relayer that cannot be changed does not prevent the change of the others.
func TestResumeAll_Failed(t *testing.T) {
	store := memory.New()
	m := fleet(t, store, 30, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionResume && o.ID == "r-007" {
			return relayer.Refuse("not synchronized")
		}
		if o.Action == relayer.ActionResume && o.ID == "r-008" {
			return fmt.Errorf("asking for it: %w", context.DeadlineExceeded)
		}
		return nil
	}))
	wantBulk(m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()))(t, 30, 0) // no admission
	editRecord(t, store, "r-009", func(rec *relayer.Record) { rec.Document = []byte(`{`) })
	resumed, err := m.ResumeAll(t.Context(), relayer.Selector{}, relayer.AllRelayers())
	if err != nil || resumed.Changed != 27 || resumed.Unchanged != 0 || len(resumed.Failed) != 3 || resumed.Failed["r-008"] == nil || resumed.Failed["r-009"] == nil {
		t.Errorf("the result is %+v, error %v", resumed, err)
	}
	if err := resumed.Failed["r-007"]; !errors.Is(err, relayer.ErrInvalid) || !strings.Contains(err.Error(), "not synchronized") {
		t.Errorf("r-007 failed with %v", err)
	}
}

// The number of failures is bounded, and so is the memory for them.
func TestResumeAll_ManyFailures(t *testing.T) {
	const most = 10_000
	m := fleet(t, memory.New(), most+50, refusing(relayer.ActionResume, relayer.Refuse("no")))
	wantBulk(m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()))(t, most+50, 0)
	resumed, err := m.ResumeAll(t.Context(), relayer.Selector{}, relayer.AllRelayers())
	if err == nil || errors.Is(err, relayer.ErrInvalid) || len(resumed.Failed) != most { // not an error of the request
		t.Errorf("%d failures, error %v", len(resumed.Failed), err)
	}
}

// A damaged relayer is in Failed, and the others are paused. Its ID is hidden from a view.
func TestPauseAll_DamagedRelayer(t *testing.T) {
	for _, count := range []int{5, 30} { // the last one, and one in the middle
		store := oneDamaged{memory.New(), 5}
		m := fleet(t, store, count)
		for _, c := range []struct {
			manager *relayer.Manager
			id      string
			changed int
		}{{m, "r-004", count - 1}, {m.Within(ofPayments), "", count*2/3 - 1}} {
			paused, err := c.manager.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers(), relayer.DryRun())
			if err != nil || paused.Changed != c.changed || len(paused.Failed) != 1 || !errors.Is(paused.Failed[c.id], relayer.ErrCorrupt) {
				t.Errorf("the result is %+v, error %v, want %d changed", paused, err, c.changed)
			}
		}
	}
}

// If the store fails, the result says what was changed, and a repetition completes it.
func TestPauseAll_StoreFails(t *testing.T) {
	inner, left := memory.New(), new(atomic.Int32)
	fleet(t, inner, 250)
	m := managerOf(t, beforeUpdate(inner, func(string) error {
		if left.Add(-1) < 0 {
			return relayer.ErrUnavailable
		}
		return nil
	}))
	ctx := relayer.WithActor(t.Context(), relayer.Actor{RequestID: "request-1"})
	paused, err := m.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers())
	if !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) || paused.Changed != 0 {
		t.Errorf("a store that fails at once: %+v, %v", paused, err)
	}
	if tried := -left.Load(); tried > 17 { // 16 are in flight, and one waits
		t.Errorf("PauseAll went on: %d writes of a store that fails", tried)
	}
	left.Store(120)
	paused, err = m.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers())
	if !errors.Is(err, relayer.ErrOutcomeUnknown) || paused.Changed != 120 || len(paused.Failed) > 0 {
		t.Errorf("a store that fails later: %+v, %v", paused, err)
	}
	if ids := pausedIDs(t, m); len(ids) != 120 {
		t.Errorf("%d are paused", len(ids))
	}
	left.Store(1000)
	wantBulk(m.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers()))(t, 250, 0)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.ResumeAll(canceled, relayer.Selector{}, relayer.AllRelayers()); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// A write of unknown outcome counts, even if another one has failed before it without an effect.
func TestPauseAll_UnknownOutcomeIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, started, both := memory.New(), new(atomic.Int32), make(chan struct{})
		fleet(t, inner, 2)
		m := managerOf(t, beforeUpdate(inner, func(string) error {
			if started.Add(1) == 1 {
				<-both
				return relayer.ErrUnavailable
			}
			close(both)
			time.Sleep(time.Second)
			return relayer.ErrOutcomeUnknown
		}))
		if _, err := m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()); !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("the error is %v", err)
		}
	})
}

// The errors of a store end the call. They are not problems of single relayers.
func TestPauseAll_ErrorsOfStore(t *testing.T) {
	for _, cause := range []error{relayer.ErrUnavailable, relayer.ErrOutcomeUnknown, context.Canceled, context.DeadlineExceeded} {
		inner, started := memory.New(), new(sync.WaitGroup)
		fleet(t, inner, 3)
		started.Add(3)
		m := managerOf(t, beforeUpdate(inner, func(string) error {
			started.Done()
			started.Wait() // so that every write has the error
			return cause
		}))
		result, err := m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers())
		if !errors.Is(err, cause) || len(result.Failed) > 0 {
			t.Errorf("%v: result %+v, error %v", cause, result, err)
		}
	}
}

// Several writes are in flight at once, for group commit, but not many.
func TestPauseAll_WritesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 16
		inner := memory.New()
		fleet(t, inner, 250)
		var inFlight, highest atomic.Int32
		m := managerOf(t, beforeUpdate(inner, func(string) error {
			defer inFlight.Add(-1)
			n := inFlight.Add(1)
			for old := highest.Load(); n > old && !highest.CompareAndSwap(old, n); old = highest.Load() {
			}
			time.Sleep(time.Second) // of the bubble: all that can begin has begun
			return nil
		}))
		wantBulk(m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()))(t, 250, 0)
		if highest.Load() != most {
			t.Errorf("%d writes were in flight, want %d", highest.Load(), most)
		}
	})
}

// A panic of a hook reaches the caller.
func TestPauseAll_PanicOfHook(t *testing.T) {
	m := fleet(t, memory.New(), 30, atEnd(func(operation relayer.Operation, _ error) {
		if operation.ID == "r-020" && operation.Action == relayer.ActionPause {
			panic("of a hook")
		}
	}))
	if cause := panicOf(func() { _, _ = m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()) }); cause != "of a hook" {
		t.Errorf("the panic is %v", cause)
	}
}

// Observers get each change, and the pages that are read.
func TestPauseAll_Observed(t *testing.T) {
	var mu sync.Mutex
	counts := make(map[string]int)
	m := fleet(t, memory.New(), 150, atEnd(func(o relayer.Operation, err error) {
		mu.Lock()
		defer mu.Unlock()
		counts[fmt.Sprint(o.Action, o.Actor.RequestID, o.Reason, o.DryRun, o.Paused != nil && *o.Paused, err)]++
	}))
	must(m.Pause(t.Context(), "r-000"))(t)
	clear(counts)
	ctx := relayer.WithActor(t.Context(), relayer.Actor{RequestID: "request-1"})
	wantBulk(m.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.Reason("why")))(t, 149, 1)
	if want := map[string]int{"pauserequest-1whyfalse true <nil>": 149, "listrequest-1false false <nil>": 2}; !maps.Equal(counts, want) {
		t.Errorf("observed were %v, want %v", counts, want)
	}
}

// A change of a relayer whose document lacks its ID changes this relayer, and deletes nothing.
func TestPatch_DocumentWithoutID(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	mustCreate(t, m, minimal("a"))
	editRecord(t, store, "a", func(rec *relayer.Record) { rec.Document = bytes.Replace(rec.Document, []byte(`"id":"a",`), nil, 1) })
	must(m.Patch(t.Context(), "a", []byte(`{"name":"other"}`)))(t)
	if got := storedRecord(t, store, "a"); !bytes.Contains(got.Document, []byte("other")) {
		t.Errorf("stored %s", got.Document)
	}
}

// A relayer whose document is damaged cannot be paused, and keeps its document.
func TestPause_DamagedDocument(t *testing.T) {
	for _, document := range []string{``, `{`, `{"paused":`, `[`, `"`, `[]`, `null`, `1`, `"text"`, `{"id":"r","network_type":"evm"}`} {
		store := storeOf(t, relayer.Record{ID: "r", Document: []byte(document)})
		m := managerOf(t, store)
		if _, err := m.Pause(t.Context(), "r"); !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("a pause of %q: error %v", document, err)
		}
		if all, err := m.PauseAll(t.Context(), relayer.Selector{}, relayer.AllRelayers()); err != nil || all.Changed != 0 || all.Failed["r"] == nil {
			t.Errorf("of %q, PauseAll returned %+v, error %v", document, all, err)
		}
		if err := m.Delete(t.Context(), "r", relayer.DryRun()); err != nil {
			t.Errorf("a dry run of the delete of %q: %v", document, err)
		}
		if rec := storedRecord(t, store, "r"); string(rec.Document) != document {
			t.Errorf("%q was replaced by %q", document, rec.Document)
		}
	}
}

// An error of the function of the caller is returned and not retried, even if it matches ErrConflict.
func TestUpdate_ErrorNotRetried(t *testing.T) {
	mine, calls := fmt.Errorf("my own: %w", relayer.ErrConflict), 0
	m := registry(t)
	_, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error { calls++; r.Name = "new"; return mine })
	if !errors.Is(err, mine) || calls != 1 || mustGet(t, m, "evm").Name == "new" {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

// BenchmarkWrite compares changes of a relayer with a create, the limit that they are
// measured against.
func BenchmarkWrite(b *testing.B) {
	for name, write := range map[string]func(m *relayer.Manager, i int) error{
		"create": func(m *relayer.Manager, i int) error {
			return second(m.Create(b.Context(), typical(fmt.Sprint("new-", i))))
		},
		"patch": func(m *relayer.Manager, i int) error {
			return second(m.Documents().Patch(b.Context(), "r", fmt.Appendf(nil, `{"policies":{"gas_price_cap":%d}}`, i)))
		},
		"pause": func(m *relayer.Manager, i int) error {
			return second(m.Documents().Patch(b.Context(), "r", fmt.Appendf(nil, `{"paused":%t}`, i%2 == 0)))
		},
		"pause that returns a relayer": func(m *relayer.Manager, i int) error {
			if i%2 == 0 {
				return second(m.Pause(b.Context(), "r"))
			}
			return second(m.Resume(b.Context(), "r"))
		},
	} {
		b.Run(name, func(b *testing.B) {
			m := managerOf(b, memory.New())
			mustCreate(b, m, typical("r"))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := write(m, i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPauseAll pauses all relayers of a file.
func BenchmarkPauseAll(b *testing.B) {
	const count = 1000
	store := must(bolt.Open(b.Context(), b.TempDir()+"/relayers.db"))(b)
	defer func() { _ = store.Close() }()
	m := fleet(b, store, count)
	for b.Loop() {
		wantBulk(m.PauseAll(b.Context(), relayer.Selector{}, relayer.AllRelayers()))(b, count, 0)
		b.StopTimer()
		wantBulk(m.ResumeAll(b.Context(), relayer.Selector{}, relayer.AllRelayers()))(b, count, 0)
		b.StartTimer()
	}
}
