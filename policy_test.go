package relayer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestPolicy_Document compares the exact bytes of documents with every field set.
func TestPolicy_Document(t *testing.T) {
	ctx := context.Background()
	for _, full := range fullRelayers {
		t.Run(string(full.networkType), func(t *testing.T) {
			m := newFullManager(t)
			created := mustCreateDocument(t, m, full.request)
			if string(created.JSON) != full.document {
				t.Errorf("created\n%s\nwant\n%s", created.JSON, full.document)
			}
			got, err := m.Documents().Get(ctx, created.ID)
			if err != nil || !reflect.DeepEqual(got, created) {
				t.Errorf("get %s at %d, %v, want %+v", got.JSON, got.Revision, err, created)
			}
			page, err := listDocuments(ctx, m, relayer.ListQuery{})
			if err != nil || !reflect.DeepEqual(page.Documents, []relayer.Document{created}) {
				t.Errorf("list %v, %v, want %+v", page, err, created)
			}
		})
	}
}

// A relayer that is read and created again through the Go API has the same document.
func TestPolicy_SameThroughGo(t *testing.T) {
	ctx := context.Background()
	for _, full := range fullRelayers {
		t.Run(string(full.networkType), func(t *testing.T) {
			m := newFullManager(t)
			mustCreateDocument(t, m, full.request)
			r, err := m.Get(ctx, "full-"+string(full.networkType))
			if err != nil {
				t.Fatal(err)
			}
			wantEverySet(t, reflect.ValueOf(r.Policy), "policies")

			again := newFullManager(t)
			created := mustCreate(t, again, requestFor(r))
			created.LastChange = r.LastChange
			if !reflect.DeepEqual(created, r) {
				t.Errorf("created %#v\nwant    %#v", created, r)
			}
			if document := storedDocument(t, again, r.ID); document != full.document {
				t.Errorf("document %s\nwant %s", document, full.document)
			}
			encoded, err := json.Marshal(r)
			if err != nil || !reflect.DeepEqual(parseTree(t, string(encoded)), parseTree(t, full.document)) {
				t.Errorf("encoded %s, %v\nwant %s", encoded, err, full.document)
			}
		})
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

// The members of an object have no order.
func TestDecode_PoliciesBeforeNetworkType(t *testing.T) {
	document := mustCreateDocument(t, newManager(t),
		`{"policies":{"max_fee":7},"custom_rpc_urls":[],"signer_id":"s","paused":false,"network_type":"stellar","network":"w","name":"n"}`)
	if got := member(t, document.JSON, "policies"); got != `{"max_fee":7}` {
		t.Errorf("policies %s", got)
	}
}

// An empty allowlist permits nothing, and no allowlist permits everything.
func TestPolicy_EmptyIsNotUnset(t *testing.T) {
	tests := []struct{ networkType, given, want string }{
		{"evm", `{"whitelist_receivers":[]}`, `{"whitelist_receivers":[]}`},
		{"evm", `{"whitelist_receivers":null}`, `{}`},
		{"evm", `{"min_balance":0,"eip1559_pricing":false}`, `{"eip1559_pricing":false,"min_balance":0}`},
		{"solana", `{"allowed_accounts":[],"allowed_programs":[],"allowed_tokens":[],"disallowed_accounts":[]}`,
			`{"allowed_accounts":[],"allowed_programs":[],"allowed_tokens":[],"disallowed_accounts":[],"fee_payment_strategy":"user"}`},
		{"solana", `{"swap_config":{}}`, `{"fee_payment_strategy":"user","swap_config":{}}`},
		{"stellar", `{"allowed_tokens":[],"swap_config":{"strategies":[]}}`, `{"allowed_tokens":[],"swap_config":{"strategies":[]}}`},
		{"stellar", `{"swap_config":{"strategies":null}}`, `{"swap_config":{}}`},
	}
	for _, test := range tests {
		m := newManager(t)
		document := mustCreateDocument(t, m, body(test.networkType, `"policies":`+test.given))
		if got := member(t, document.JSON, "policies"); got != test.want {
			t.Errorf("%s %s: policies %s, want %s", test.networkType, test.given, got, test.want)
		}
		r, err := m.Get(context.Background(), document.ID)
		if err != nil {
			t.Fatal(err)
		}
		again := mustCreate(t, newManager(t), requestFor(r))
		if !reflect.DeepEqual(again.Policy, r.Policy) {
			t.Errorf("%s %s: through Go %#v, want %#v", test.networkType, test.given, again.Policy, r.Policy)
		}
	}
}

// TestPolicy_Enums covers every value of every enum.
func TestPolicy_Enums(t *testing.T) {
	choices := []struct {
		networkType, policies string
		values                []string
	}{
		{"solana", `{"fee_payment_strategy":%q}`, []string{"user", "relayer"}},
		{"solana", `{"fee_payment_strategy":"user","swap_config":{"strategy":%q}}`, []string{"jupiter-swap", "jupiter-ultra", "noop"}},
		{"solana", `{"fee_payment_strategy":"user","swap_config":{"jupiter_swap_options":{"priority_level":%q}}}`, []string{"medium", "high", "veryHigh"}},
		{"stellar", `{"fee_payment_strategy":%q}`, []string{"user", "relayer"}},
		{"stellar", `{"swap_config":{"strategies":[%q]}}`, []string{"order-book", "soroswap"}},
	}
	for _, choice := range choices {
		for _, value := range choice.values {
			policies := fmt.Sprintf(choice.policies, value)
			document := mustCreateDocument(t, newManager(t), body(choice.networkType, `"policies":`+policies))
			if got := member(t, document.JSON, "policies"); got != policies {
				t.Errorf("policies %s, want %s", got, policies)
			}
			for _, wrong := range []string{strings.ToUpper(value), value + " ", value[1:], ""} {
				problems := problemsOf(t, body(choice.networkType, `"policies":`+fmt.Sprintf(choice.policies, wrong)))
				if len(problems) != 1 || !mentionsAll(problems[0].Message, choice.values) {
					t.Errorf("%s with %q: %+v, want one problem that names %q", choice.policies, wrong, problems, choice.values)
				}
			}
		}
	}
}

func mentionsAll(message string, values []string) bool {
	return !slices.ContainsFunc(values, func(value string) bool { return !strings.Contains(message, value) })
}

// The kind is a string or one of two objects.
func TestPolicy_StellarTokenKinds(t *testing.T) {
	at := func(kind string) string {
		return body("stellar", `"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":`+kind+`}}]}`)
	}
	for _, kind := range []string{`"native"`, `{"classic":{"code":"c","issuer":"i"}}`, `{"contract":{"contract_id":"c"}}`} {
		document := mustCreateDocument(t, newManager(t), at(kind))
		if want := `{"allowed_tokens":[{"asset":"a","metadata":{"kind":` + kind + `}}]}`; member(t, document.JSON, "policies") != want {
			t.Errorf("kind %s: document %s", kind, document.JSON)
		}
	}
	const path = "policies.allowed_tokens[0].metadata.kind"
	tests := []struct {
		kind string
		want []string
	}{
		{`""`, []string{path}},
		{`"Native"`, []string{path}},
		{`{}`, []string{path}},
		{`{"classic":null}`, []string{path}},
		{`{"classic":null,"contract":null}`, []string{path}},
		{`{"classic":{"code":"c","issuer":"i"},"contract":{"contract_id":"c"}}`, []string{path}},
		{`{"native":{}}`, []string{path, path + ".native"}},
		{`{"-":null,"native":{}}`, []string{path, path + ".-", path + ".native"}},
		{`{"classic":{"code":"c","issuer":"i"},"native":{}}`, []string{path + ".native"}},
		{`{"classic":{"code":"c"}}`, []string{path + ".classic.issuer"}},
		{`{"contract":{}}`, []string{path + ".contract.contract_id"}},
	}
	for _, test := range tests {
		t.Run(test.kind, func(t *testing.T) { wantFields(t, problemsOf(t, at(test.kind)), test.want...) })
	}
}

// The fields of policies and endpoints are pointers, which fmt prints as addresses.
func TestRelayer_PrintsValues(t *testing.T) {
	policy := &relayer.EVMPolicy{GasPriceCap: new(relayer.MustParseAmount("7")), PrivateTransactions: new(false)}
	config := relayer.RPCConfig{URL: "https://rpc.example/key", Weight: new(2.5)}
	r := &relayer.Relayer{ID: "a", NetworkType: relayer.EVM, CustomRPCURLs: []relayer.RPCConfig{config}, Policy: policy, Revision: 9}
	req := relayer.CreateRequest{CustomRPCURLs: r.CustomRPCURLs, Policy: policy}
	const (
		policyText = `{"gas_price_cap":7,"private_transactions":false}`
		configText = `{"url":"https://rpc.example/***","weight":2.5}`
	)
	relayerText := `{"id":"a","name":"","network":"","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"",` +
		`"custom_rpc_urls":[` + configText + `],"policies":` + policyText + `,"revision":9}`
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		for value, want := range map[any]string{
			r: relayerText, &req: `"custom_rpc_urls":[` + configText + `],"policies":` + policyText, &config: configText, policy: policyText,
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
	if want := strconv.Quote(relayerText); !strings.Contains(log.String(), want) || !strings.Contains(log.String(), strconv.Quote(policyText)) {
		t.Errorf("logged %s, want %s", log.String(), want)
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
		if err := json.Unmarshal([]byte(kind), &got); err != nil || string(got.Unknown) != kind {
			t.Errorf("%s decodes to %+v, error %v", kind, got, err)
			continue
		}
		if encoded, err := json.Marshal(got); err != nil || string(encoded) != kind {
			t.Errorf("%s is encoded as %s, error %v", kind, encoded, err)
		}
		req := minimal("a")
		req.NetworkType = relayer.Stellar
		req.Policy = &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: &got}}}}
		_, err := newManager(t).Create(t.Context(), req)
		wantFields(t, fieldErrors(t, err), "policies.allowed_tokens[0].metadata.kind")
	}
}
