package relayer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestPolicy_EveryForm creates a relayer with every field in all forms of its request: the body, the
// request that was decoded or encoded, and the relayer that was read. The document is the same.
func TestPolicy_EveryForm(t *testing.T) {
	for _, full := range fullRelayers {
		t.Run(string(full.networkType), func(t *testing.T) {
			m := newFullManager(t)
			body := []byte(full.request)
			created := must(m.Documents().Create(t.Context(), body))(t)
			if string(created.JSON) != full.document || string(body) != full.request {
				t.Errorf("created\n%s\nwant\n%s\nof %s", created.JSON, full.document, body)
			}
			clear(body) // it belongs to the caller
			if got := must(m.Documents().Get(t.Context(), created.ID))(t); !reflect.DeepEqual(got, created) {
				t.Errorf("get %s at %d, want %+v", got.JSON, got.Revision, created)
			}
			if page := must(m.Documents().List(t.Context(), relayer.ListQuery{}))(t); !reflect.DeepEqual(page.Documents, []relayer.Document{created}) {
				t.Errorf("list %v, want %+v", page, created)
			}
			r := mustGet(t, m, created.ID)
			wantEverySet(t, reflect.ValueOf(r.Policy), "policies")
			if encoded := must(json.Marshal(r))(t); !reflect.DeepEqual(parseTree(t, string(encoded)), parseTree(t, full.document)) {
				t.Errorf("encoded %s\nwant %s", encoded, full.document)
			}
			var decoded relayer.CreateRequest
			mustSucceed(t, json.Unmarshal([]byte(full.request), &decoded))
			for _, req := range []relayer.CreateRequest{requestFor(r), decoded} {
				wantSameRelayer(t, req, r)
			}
		})
	}
	noURLs, noPolicy := minimal("no-urls"), minimal("nil-policy")
	noURLs.CustomRPCURLs, noPolicy.Policy = []relayer.RPCConfig{}, (*relayer.EVMPolicy)(nil)
	for _, req := range []relayer.CreateRequest{minimal("minimal"), noURLs, noPolicy} {
		wantSameRelayer(t, req, mustCreate(t, newFullManager(t), req))
	}
}

// wantSameRelayer fails unless a request and its body create this relayer.
func wantSameRelayer(t *testing.T, req relayer.CreateRequest, want *relayer.Relayer) {
	t.Helper()
	inGo, byBody := newFullManager(t), newFullManager(t)
	mustCreate(t, inGo, req)
	mustCreateDocument(t, byBody, string(must(req.MarshalUnmasked())(t)))
	for _, m := range []*relayer.Manager{inGo, byBody} {
		got := mustGet(t, m, want.ID)
		if got.LastChange = want.LastChange; !reflect.DeepEqual(got, want) {
			t.Errorf("created %#v\nwant    %#v", got, want)
		}
	}
}

// wantEverySet fails for a field that no full request sets.
func wantEverySet(t *testing.T, value reflect.Value, path string) {
	t.Helper()
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			t.Errorf("%s is not set", path)
			return
		}
		wantEverySet(t, value.Elem(), path)
	case reflect.Slice:
		if value.IsNil() {
			t.Errorf("%s is not set", path)
		}
		if value.Len() > 0 {
			wantEverySet(t, value.Index(0), path+"[0]")
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[relayer.StellarTokenKind]() {
			return
		}
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() {
				wantEverySet(t, value.Field(i), path+"."+field.Name)
			}
		}
	}
}

// TestPolicy_OmittedAndNull omits every optional field. The rest of the document is
// unchanged, and null has the same result.
func TestPolicy_OmittedAndNull(t *testing.T) {
	defaults := map[string]string{
		"solana policies":                      `{"fee_payment_strategy":"user"}`,
		"solana policies.fee_payment_strategy": `"user"`,
	}
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			known := fieldAt(t, full, path)
			isElement := strings.HasSuffix(path, "]")
			isHalfUnion := strings.HasSuffix(path, ".classic") || strings.HasSuffix(path, ".contract")
			if known.required || isElement || isHalfUnion || path == "id" {
				continue
			}
			t.Run(fmt.Sprint(full.networkType, " ", path), func(t *testing.T) {
				want := without(t, full.document, path)
				if strings.HasSuffix(path, ".weight") {
					want = replaced(t, full.document, path, "100")
				}
				if value, ok := defaults[string(full.networkType)+" "+path]; ok {
					want = replaced(t, full.document, path, value)
				} else if path == "policies" {
					want = replaced(t, full.document, path, "{}")
				}
				leftOut := mustCreateDocument(t, newFullManager(t), without(t, full.request, path))
				if !reflect.DeepEqual(parseTree(t, string(leftOut.JSON)), parseTree(t, want)) {
					t.Errorf("left out\n%s\nwant\n%s", leftOut.JSON, want)
				}
				null := mustCreateDocument(t, newFullManager(t), replaced(t, full.request, path, "null"))
				if string(null.JSON) != string(leftOut.JSON) {
					t.Errorf("null\n%s\nleft out\n%s", null.JSON, leftOut.JSON)
				}
			})
		}
	}
}

// An empty allowlist permits nothing, and no allowlist permits everything.
func TestPolicy_EmptyIsNotUnset(t *testing.T) {
	for _, test := range []struct{ networkType, given, want string }{
		{"evm", `{"whitelist_receivers":[]}`, `{"whitelist_receivers":[]}`},
		{"evm", `{"whitelist_receivers":null}`, `{}`},
		{"evm", `{"min_balance":0,"eip1559_pricing":false}`, `{"eip1559_pricing":false,"min_balance":0}`},
		{"solana", `{"allowed_accounts":[],"allowed_programs":[],"allowed_tokens":[],"disallowed_accounts":[]}`,
			`{"allowed_accounts":[],"allowed_programs":[],"allowed_tokens":[],"disallowed_accounts":[],"fee_payment_strategy":"user"}`},
		{"solana", `{"swap_config":{}}`, `{"fee_payment_strategy":"user","swap_config":{}}`},
		{"stellar", `{"allowed_tokens":[],"swap_config":{"strategies":[]}}`, `{"allowed_tokens":[],"swap_config":{"strategies":[]}}`},
		{"stellar", `{"swap_config":{"strategies":null}}`, `{"swap_config":{}}`},
	} {
		m := newFullManager(t)
		document := mustCreateDocument(t, m, body(test.networkType, `"policies":`+test.given))
		if got := member(t, document.JSON, "policies"); got != test.want {
			t.Errorf("%s %s: policies %s, want %s", test.networkType, test.given, got, test.want)
		}
		r := mustGet(t, m, document.ID)
		wantSameRelayer(t, requestFor(r), r)
	}
}

// TestPolicy_Enums covers every value of every enum.
func TestPolicy_Enums(t *testing.T) {
	for _, choice := range []struct {
		networkType, policies string
		values                []string
	}{
		{"solana", `{"fee_payment_strategy":%q}`, []string{"user", "relayer"}},
		{"solana", `{"fee_payment_strategy":"user","swap_config":{"strategy":%q}}`, []string{"jupiter-swap", "jupiter-ultra", "noop"}},
		{"solana", `{"fee_payment_strategy":"user","swap_config":{"jupiter_swap_options":{"priority_level":%q}}}`, []string{"medium", "high", "veryHigh"}},
		{"stellar", `{"fee_payment_strategy":%q}`, []string{"user", "relayer"}},
		{"stellar", `{"swap_config":{"strategies":[%q]}}`, []string{"order-book", "soroswap"}},
	} {
		for _, value := range choice.values {
			policies := fmt.Sprintf(choice.policies, value)
			document := mustCreateDocument(t, newManager(t), body(choice.networkType, `"policies":`+policies))
			if got := member(t, document.JSON, "policies"); got != policies {
				t.Errorf("policies %s, want %s", got, policies)
			}
			for _, wrong := range []string{strings.ToUpper(value), value + " ", value[1:], ""} {
				problems := problemsOf(t, body(choice.networkType, `"policies":`+fmt.Sprintf(choice.policies, wrong)))
				for _, value := range choice.values {
					if len(problems) != 1 || !strings.Contains(problems[0].Message, value) {
						t.Errorf("%s with %q: %+v, want one problem that names %q", choice.policies, wrong, problems, value)
					}
				}
			}
		}
	}
}

// The kind is a string or one of two objects. fullRelayers has the valid ones.
func TestPolicy_StellarTokenKinds(t *testing.T) {
	const path = "policies.allowed_tokens[0].metadata.kind"
	for kind, want := range map[string][]string{
		`""`:                               {path},
		`"Native"`:                         {path},
		`{}`:                               {path},
		`{"classic":null}`:                 {path},
		`{"classic":null,"contract":null}`: {path},
		`{"classic":{"code":"c","issuer":"i"},"contract":{"contract_id":"c"}}`: {path},
		`{"native":{}}`:          {path, path + ".native"},
		`{"-":null,"native":{}}`: {path, path + ".-", path + ".native"},
		`{"classic":{"code":"c","issuer":"i"},"native":{}}`: {path + ".native"},
		`{"classic":{"code":"c"}}`:                          {path + ".classic.issuer"},
		`{"contract":{}}`:                                   {path + ".contract.contract_id"},
	} {
		t.Run(kind, func(t *testing.T) {
			wantFields(t, problemsOf(t, body("stellar", `"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":`+kind+`}}]}`)), want...)
		})
	}
}

// The fields of policies and endpoints are pointers, which fmt prints as addresses.
func TestRelayer_PrintsValues(t *testing.T) {
	policy := &relayer.EVMPolicy{GasPriceCap: new(relayer.MustParseAmount("7")), PrivateTransactions: new(false)}
	config := relayer.RPCConfig{URL: "https://rpc.example/key", Weight: new(2.5)}
	r := &relayer.Relayer{ID: "a", NetworkType: relayer.EVM, CustomRPCURLs: []relayer.RPCConfig{config}, Policy: policy, Revision: 9}
	req := relayer.CreateRequest{CustomRPCURLs: r.CustomRPCURLs, Policy: policy}
	const (
		policyText  = `{"gas_price_cap":7,"private_transactions":false}`
		configText  = `{"url":"https://rpc.example/***","weight":2.5}`
		bothText    = `"custom_rpc_urls":[` + configText + `],"policies":` + policyText
		relayerText = `{"id":"a","name":"","network":"","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"",` + bothText + `,"revision":9}`
	)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		for value, want := range map[any]string{
			r: relayerText, &req: bothText, &config: configText, policy: policyText,
			&relayer.Change{Kind: relayer.ChangeCreated, Relayer: r}: relayerText,
			&relayer.SolanaPolicy{MaxSignatures: new(int32(3))}:      `{"max_signatures":3}`, &relayer.StellarPolicy{MaxFee: new(int32(4))}: `{"max_fee":4}`,
			&relayer.RPCConfig{Weight: new(math.NaN())}: "NaN",
		} {
			if got := fmt.Sprintf(verb, value); !strings.Contains(got, want) || strings.Contains(got, "0xc0") {
				t.Errorf("%s of %T is %s, want %s", verb, value, got, want)
			}
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "relayer", r, "policy", policy)
	for _, want := range []string{strconv.Quote(relayerText), strconv.Quote(policyText)} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("logged %s, want %s", log.String(), want)
		}
	}
	if got := fmt.Sprint((*relayer.Relayer)(nil), (*relayer.EVMPolicy)(nil)); got != "<nil> <nil>" {
		t.Errorf("nil pointers are %s", got)
	}
}

// A kind that a newer version stored is not the native asset, and does not make the
// relayer unreadable.
func TestPolicy_UnknownStellarTokenKind(t *testing.T) {
	for _, kind := range []string{`"liquidity"`, `{"pool":{"id":"p"}}`, `7`, `["a"]`, `{}`} {
		var got relayer.StellarTokenKind
		mustSucceed(t, json.Unmarshal([]byte(kind), &got))
		if encoded := must(json.Marshal(got))(t); string(got.Unknown) != kind || string(encoded) != kind {
			t.Errorf("%s decodes to %+v, and is encoded as %s", kind, got, encoded)
		}
		req := minimal("a")
		req.NetworkType = relayer.Stellar
		req.Policy = &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &got}}}}
		wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), req))), "policies.allowed_tokens[0].metadata.kind")
	}
}
