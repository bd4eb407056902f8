package relayer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

func TestAddressResolver_Address(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "caller")
	m := newManager(t, relayer.WithAddressResolver(func(ctx context.Context, req relayer.CreateRequest) (string, error) {
		return fmt.Sprintf("%v:%s:%s:%s", ctx.Value(key{}), req.SignerID, req.NetworkType, req.Network), nil
	}))
	const want = "caller:s:stellar:w"
	document, err := m.Documents().Create(ctx, []byte(body("stellar", `"id":"a"`)))
	if err != nil || member(t, document.JSON, "address") != `"`+want+`"` {
		t.Errorf("document %s, %v", document.JSON, err)
	}
	if r := mustGet(t, m, "a"); r.Address != want {
		t.Errorf("address %q, want %q", r.Address, want)
	}
	without := mustCreateDocument(t, newManager(t), evmBody())
	if got := member(t, without.JSON, "address"); got != `""` {
		t.Errorf("address without a resolver: %s", got)
	}
}

// An unknown signer is a problem of the request, reported with the others and without
// the text of the host's error.
func TestAddressResolver_UnknownSigner(t *testing.T) {
	option := relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) {
		return "ignored", fmt.Errorf("no key s in secret-vault-7: %w", relayer.ErrUnknownSigner)
	})
	_, err := newManager(t, option).Create(t.Context(), minimal(""))
	if wantFields(t, fieldErrors(t, err), "signer_id"); strings.Contains(err.Error(), "vault") || strings.Contains(err.Error(), "no key") {
		t.Errorf("the error has the text of the host: %v", err)
	}
	wantFields(t, problemsOf(t, evmBody(`"id":"a b"`, `"x":1`, `"policies":{"min_balance":-1}`), option), "id", "x", "policies.min_balance", "signer_id")
}

func TestLists_Length(t *testing.T) {
	receivers := func(count int) string {
		return `"policies":{"whitelist_receivers":[` + strings.Repeat(`"",`, count-1) + `""]}`
	}
	mustCreateDocument(t, newManager(t), evmBody(receivers(10_000)))
	want := relayer.FieldError{Field: "policies.whitelist_receivers", Message: "must have at most 10000 elements", Code: "out_of_range"}
	if got := problemsOf(t, evmBody(receivers(20_000)), relayer.WithNetworkRules()); len(got) != 1 || got[0] != want {
		t.Errorf("JSON: the problems are %v", got)
	}
	req := minimal("")
	req.CustomRPCURLs = make([]relayer.RPCConfig, 10_001)
	want.Field = "custom_rpc_urls"
	if got := fieldErrors(t, req.Validate(t.Context())); len(got) != 1 || got[0] != want {
		t.Errorf("Go: the problems are %v", got)
	}
}

const (
	evmAddress     = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	solanaAddress  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	stellarAddress = "GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN"
)

// An address that cannot be stored is an error of the host and not a problem of the
// request.
func TestAddressResolver_InvalidAddress(t *testing.T) {
	anyNetwork := []string{
		"not an address\n\x00", "0x1\x00", "0x1\xff", "\xc0\xaf", "0x1\n", " 0x1", "0x1\t", "0x1\x7f", "0x1\u0085", "0x1\u2028", "0x1\u202e",
		"https://user:SECRET@rpc.example/v2", "redis://:SECRET@db", "user:SECRET@host", strings.Repeat("a", 257), "bücher", "<b>", "0x1\\",
	}
	byNetwork := map[relayer.NetworkType][]string{
		relayer.EVM:     {"", "0x1", "nothing", solanaAddress, strings.ToLower(evmAddress[2:]), "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"},
		relayer.Solana:  {"", "0x1", "nothing", evmAddress, stellarAddress, solanaAddress + "1"},
		relayer.Stellar: {"", "0x1", "nothing", evmAddress, solanaAddress, stellarAddress[:55] + "A"},
	}
	for networkType, wrong := range byNetwork {
		for _, address := range anyNetwork {
			wantHostFault(t, networkType, address)
			wantHostFault(t, networkType, address, relayer.WithNetworkRules())
		}
		for _, address := range wrong {
			wantHostFault(t, networkType, address, relayer.WithNetworkRules())
		}
	}
}

func withAddress(address string) relayer.Option {
	return relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) { return address, nil })
}

// wantHostFault fails unless a create with this address stores nothing and returns an
// error that names no field and does not quote the address.
func wantHostFault(t *testing.T, networkType relayer.NetworkType, address string, options ...relayer.Option) {
	t.Helper()
	m := newManager(t, append(options, withAddress(address))...)
	req := minimal("a")
	req.NetworkType = networkType
	for _, err := range []error{
		second(m.Create(t.Context(), req)), second(m.Documents().Create(t.Context(), []byte(body(string(networkType), `"id":"a"`)))),
	} {
		if err == nil || errors.Is(err, relayer.ErrInvalid) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s address %q: error %v", networkType, address, err)
		}
	}
	if _, err := m.Get(t.Context(), "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("%s address %q: stored, error %v", networkType, address, err)
	}
}

func TestAddressResolver_ValidAddress(t *testing.T) {
	for address, networkType := range map[string]relayer.NetworkType{
		evmAddress: relayer.EVM, strings.ToLower(evmAddress): relayer.EVM, solanaAddress: relayer.Solana, stellarAddress: relayer.Stellar,
		"": relayer.EVM, "eip155:1:0x1": relayer.EVM, "a-b_c.d": relayer.Solana, strings.Repeat("a", 256): relayer.Stellar,
	} {
		managers := []*relayer.Manager{newManager(t, withAddress(address))}
		if len(address) > 40 && len(address) < 100 {
			managers = append(managers, newManager(t, withAddress(address), relayer.WithNetworkRules()))
		}
		for _, m := range managers {
			req := minimal("")
			req.NetworkType = networkType
			if r := mustCreate(t, m, req); r.Address != address {
				t.Errorf("address %q, want %q", r.Address, address)
			}
		}
	}
}

// The resolver is not called for an invalid signer or network. Other problems come before its error.
func TestAddressResolver_InvalidRequest(t *testing.T) {
	calls, fault := 0, error(nil)
	m := newManager(t, relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) {
		calls++
		return "", fault
	}))
	for _, path := range []string{"signer_id", "network", "network_type"} {
		for _, wrong := range []string{`""`, `5`, `null`, `"\u0000"`} {
			_, err := m.Documents().Create(t.Context(), []byte(replaced(t, evmBody(), path, wrong)))
			wantFields(t, fieldErrors(t, err), path)
		}
	}
	if calls != 0 {
		t.Errorf("the resolver was called %d times", calls)
	}
	mustCreate(t, m, minimal(""))
	if calls != 1 {
		t.Errorf("the resolver was called %d times for one relayer", calls)
	}
	fault = errors.New("vault sealed")
	_, err := m.Documents().Create(t.Context(), []byte(evmBody(`"x":1`)))
	wantFields(t, fieldErrors(t, err), "x")
}

func TestNetworkRules_OuterSpaces(t *testing.T) {
	for _, c := range []struct{ network, signer, field string }{
		{" sepolia", "s", "network"}, {"sepolia\t", "s", "network"}, {"sepolia", "\u00a0s", "signer_id"}, {"sepolia", "s ", "signer_id"},
	} {
		store := memory.New()
		strict := managerOf(t, store, relayer.WithNetworkRules())
		req := minimal("a")
		req.Network, req.SignerID = c.network, c.signer
		problems := fieldErrors(t, second(strict.Create(t.Context(), req)))
		if !slices.Equal(problems, []relayer.FieldError{{Field: c.field, Message: "must not begin or end with a space"}}) {
			t.Errorf("%q: %+v", c, problems)
		}
		mustCreate(t, managerOf(t, store), req)
		// These fields cannot be changed, so that the rule applies only to new relayers.
		must(strict.Patch(t.Context(), "a", []byte(`{"name":"m"}`)))(t)
	}
}

// Validate returns what a create returns, without a store.
func TestCreateRequest_Validate(t *testing.T) {
	refuse := func(_ context.Context, req relayer.CreateRequest) (string, error) {
		if req.SignerID == "unknown" {
			return "", relayer.ErrUnknownSigner
		}
		return "0x0000000000000000000000000000000000000001", nil
	}
	options := []relayer.Option{
		relayer.WithNetworkRules(), relayer.WithAddressResolver(refuse), relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}), relayer.WithMaxRelayerSize(1000),
	}
	for name, change := range map[string]func(*relayer.CreateRequest){
		"network rule":   func(r *relayer.CreateRequest) { r.Policy = &relayer.EVMPolicy{WhitelistReceivers: []string{"x"}} },
		"unknown signer": func(r *relayer.CreateRequest) { r.SignerID = "unknown" },
		"private URL":    func(r *relayer.CreateRequest) { r.CustomRPCURLs = []relayer.RPCConfig{{URL: "http://10.0.0.1"}} },
		"too large":      func(r *relayer.CreateRequest) { r.Name = strings.Repeat("n", 1000) },
	} {
		req := minimal("a")
		change(&req)
		got, want := req.Validate(t.Context(), options...), second(newManager(t, options...).Create(t.Context(), req))
		if got, want := fieldErrors(t, got), fieldErrors(t, want); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	mustSucceed(t, minimal("a").Validate(t.Context(), options...))
	mustSucceed(t, withURLs("a", "https://a.example/***").Validate(t.Context())) // a masked URL
	if err := minimal("a").Validate(t.Context(), relayer.Option{}); err == nil || errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("an empty option: %v", err)
	}
}

func labelsOf(count int) string {
	members := make([]string, count)
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// Labels are the last member of a document, in the order of their keys.
func TestLabels_Create(t *testing.T) {
	for text, want := range map[string]string{
		`null`:                "",
		`{}`:                  "",
		`{"team":"payments"}`: `{"team":"payments"}`,
		`{"b":"2","B":"1","a/b.c_d-e":"","0":"x"}`:                               `{"0":"x","B":"1","a/b.c_d-e":"","b":"2"}`,
		`{"A":"","Z":"","z":"","9":""}`:                                          `{"9":"","A":"","Z":"","z":""}`,
		`{"a":"<é&\u2713> %,|="}`:                                                `{"a":"<é&✓> %,|="}`,
		`{"` + strings.Repeat("k", 63) + `":"` + strings.Repeat("é", 128) + `"}`: `{"` + strings.Repeat("k", 63) + `":"` + strings.Repeat("é", 128) + `"}`,
	} {
		document := mustCreateDocument(t, newManager(t), evmBody(`"labels":`+text))
		if got := member(t, document.JSON, "labels"); got != want {
			t.Errorf("%s is stored as %s, want %s", text, got, want)
		}
		if want != "" && !strings.HasSuffix(string(document.JSON), `,"labels":`+want+`}`) {
			t.Errorf("labels are not last: %s", document.JSON)
		}
	}
	mustCreateDocument(t, newManager(t), evmBody(`"labels":`+labelsOf(32)))
}

func TestLabels_Invalid(t *testing.T) {
	key := strings.Repeat("k", 64)
	for text, want := range map[string][]string{
		`[]`:                    {"labels"},
		`"a"`:                   {"labels"},
		labelsOf(33):            {"labels"},
		`{"":"x"}`:              {"labels"},
		`{"-a":"x"}`:            {"labels.-a"},
		`{"a.":"x"}`:            {"labels.a."},
		`{"a b":"x"}`:           {"labels.a b"},
		`{"é":"x"}`:             {"labels.é"},
		`{"` + key + `":"x"}`:   {"labels." + key},
		`{"a":1,"c":{}}`:        {"labels.a", "labels.c"},
		`{"a":"x","a":"y"}`:     {"labels.a"},
		`{"a":1,"a":"y"}`:       {"labels.a", "labels.a"},
		`{"a":1,"a.b":2}`:       {"labels.a", "labels.a.b"},
		`{"a":"\n","a.b":"\t"}`: {"labels.a", "labels.a.b"},
		`{"a":"\u0000"}`:        {"labels.a"},
		`{"a":"\ud800"}`:        {"labels.a"},
		`{"a":"` + strings.Repeat("é", 129) + `"}`: {"labels.a"},
	} {
		t.Run(text[:min(len(text), 30)], func(t *testing.T) { wantRefused(t, `"labels":`+text, want) })
	}
	wantFields(t, problemsOf(t, evmBody(`"labels":{"b":null}`)), "labels.b") // removes a label in a patch
	req := minimal("a")
	req.Labels = map[string]string{"a": "\xff", "\xfe": "x", "": "x"}
	wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), req))), "labels.a", "labels.\xfe", "labels")
}

// A patch merges labels key by key.
func TestLabels_Patch(t *testing.T) {
	for patch, want := range map[string]string{
		`{}`:                                     `{"a":"1","b":"2"}`,
		`{"labels":{}}`:                          `{"a":"1","b":"2"}`,
		`{"labels":{"c":"3"}}`:                   `{"a":"1","b":"2","c":"3"}`,
		`{"labels":{"a":"x"}}`:                   `{"a":"x","b":"2"}`,
		`{"labels":{"a":""}}`:                    `{"a":"","b":"2"}`,
		`{"labels":{"a":null}}`:                  `{"b":"2"}`,
		`{"labels":{"none":null}}`:               `{"a":"1","b":"2"}`,
		`{"labels":{"a":null,"b":null}}`:         "",
		`{"labels":{"a":null,"b":null,"c":"3"}}`: `{"c":"3"}`,
		`{"labels":null}`:                        "",
		`{"name":"new"}`:                         `{"a":"1","b":"2"}`,
	} {
		m := newManager(t)
		before := mustCreateDocument(t, m, evmBody(`"id":"a"`, `"labels":{"b":"2","a":"1"}`))
		after := must(m.Documents().Patch(t.Context(), "a", []byte(patch)))(t)
		if got := member(t, after.JSON, "labels"); got != want {
			t.Errorf("%s: %s, want %s", patch, got, want)
		}
		if isSame := string(after.JSON) == string(before.JSON); isSame != (after.Revision == before.Revision) {
			t.Errorf("%s: revision %d after %d", patch, after.Revision, before.Revision)
		}
	}
	m := newManager(t)
	mustCreateDocument(t, m, evmBody(`"id":"a"`, `"labels":`+labelsOf(32)))
	must(m.Patch(t.Context(), "a", []byte(`{"labels":{"k0":null,"new":"x"}}`)))(t)
	wantFields(t, fieldErrors(t, second(m.Patch(t.Context(), "a", []byte(`{"labels":{"more":"x"}}`)))), "labels")
}

// sizeOf returns the size of a relayer as stored.
func sizeOf(t *testing.T, store relayer.Store, id string) int {
	t.Helper()
	rec := storedRecord(t, store, id)
	return len(rec.Document) + len(rec.Private)
}

func wantTooLarge(t *testing.T, what string, err error, limit, size int) {
	t.Helper()
	want := relayer.FieldError{Message: fmt.Sprintf("the relayer must be at most %d bytes as stored, not %d", limit, size), Code: "out_of_range"}
	if problems := fieldErrors(t, err); !slices.Equal(problems, []relayer.FieldError{want}) {
		t.Errorf("%s: %+v, want %+v", what, problems, want)
	}
}

func TestMaxRelayerSize_Default(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	req := withURLs("a", "https://rpc.example/v2/key")
	mustCreate(t, m, req)
	room := 262144 - sizeOf(t, store, "a")

	fits := "n" + strings.Repeat("x", room)
	longer := fits + "x"
	for what, write := range map[string]operation{"update": updating(func(r *relayer.Relayer) { r.Name = longer }), "patch": patching(`{"name":"` + longer + `"}`)} {
		wantTooLarge(t, what, second(write(m, t.Context(), "a")), 262144, 262145)
	}
	must(m.Patch(t.Context(), "a", []byte(`{"name":"`+fits+`"}`)))(t)
	if size := sizeOf(t, store, "a"); size != 262144 {
		t.Errorf("a relayer of the maximum size has %d bytes", size)
	}

	req.ID, req.Name = "b", longer
	wantTooLarge(t, "create", second(m.Create(t.Context(), req)), 262144, 262145)
	wantTooLarge(t, "validate", req.Validate(t.Context()), 262144, 262145)
	req.Name, req.Paused = fits, true
	mustCreate(t, m, req)
	must(m.Resume(t.Context(), "b"))(t)
	// A longer URL has the same mask.
	_, err := m.Patch(t.Context(), "b", []byte(`{"custom_rpc_urls":[{"url":"https://rpc.example/v2/key2"}]}`))
	wantTooLarge(t, "full URLs", err, 262144, 262145)
}

// What was stored above the maximum can be read, shrunk, switched and deleted.
func TestMaxRelayerSize_StoredAbove(t *testing.T) {
	store := memory.New()
	req := minimal("a")
	req.Policy = &relayer.EVMPolicy{WhitelistReceivers: slices.Repeat([]string{"receiver"}, 1000)}
	req.NotificationID = "x"
	mustCreate(t, managerOf(t, store), req)
	m := managerOf(t, store, relayer.WithMaxRelayerSize(1000))
	ctx := t.Context()
	mustGet(t, m, "a")
	must(m.List(ctx, relayer.ListQuery{}))(t)
	wantTooLarge(t, "growing", second(m.Patch(ctx, "a", []byte(`{"name":"nn"}`))), 1000, sizeOf(t, store, "a")+1)
	for _, write := range []operation{
		(*relayer.Manager).Pause, (*relayer.Manager).Resume, patchingDocument(`{"paused":true}`), patchingDocument(`{"paused":false}`),
		patchingDocument(`{}`), patchingDocument(`{"name":"m"}`), patchingDocument(`{"notification_id":null}`),
		disabling(relayer.DisabledReason{Type: "x", Details: strings.Repeat("long", 1<<14)}), (*relayer.Manager).Enable,
		updating(func(r *relayer.Relayer) {
			policy := r.Policy.(*relayer.EVMPolicy)
			policy.WhitelistReceivers = policy.WhitelistReceivers[:500]
		}),
		deleting,
	} {
		must(write(m, ctx, "a"))(t)
	}
}

// Disable succeeds with the text of any error: long details are cut off, and what cannot be
// stored is replaced. Only its type can be invalid.
func TestDisable_AnyDetails(t *testing.T) {
	m := registry(t)
	for _, reason := range []relayer.DisabledReasonType{"", "\x00", "\xff", relayer.DisabledReasonType(strings.Repeat("t", 257))} {
		wantFields(t, fieldErrors(t, second(m.Disable(t.Context(), "evm", relayer.DisabledReason{Type: reason}))), "type")
	}
	for reason, field := range map[string]string{`[]`: "", `{"details":"x"}`: "type", `{"type":"x","details":5}`: "details", `{"type":"\u0000"}`: "type"} {
		wantFields(t, fieldErrors(t, second(m.Documents().Disable(t.Context(), "evm", []byte(reason)))), field)
	}
	if r := mustGet(t, m, "evm"); r.SystemDisabled {
		t.Error("disabled for no reason")
	}
	document := must(m.Documents().Disable(t.Context(), "evm", []byte(`{"type":"x","details":"see https://a/KEY"}`)))(t)
	if got := member(t, document.JSON, "disabled_reason"); got != `{"type":"x","details":"see https://a/***"}` {
		t.Errorf("the reason is %s", got)
	}
	for details, want := range map[string]string{
		strings.Repeat("x", 16<<10):                strings.Repeat("x", 16<<10),
		strings.Repeat("x", 16<<10) + "yz":         strings.Repeat("x", 16<<10),
		"x" + strings.Repeat("é", 16<<10):          "x" + strings.Repeat("é", 8<<10-1),
		"response \xff\xfe\x00: https://a/KEY\xff": "response \uFFFD\uFFFD: https://a/***",
		strings.Repeat("https://a/KEY ", 2000):     strings.Repeat("https://a/*** ", 2000)[:16<<10],
		// Of the last URL, only user information is within the first 64 KiB.
		"https://a/" + strings.Repeat("x", 64<<10-29) + " https://user:12345678@a": "https://a/*** ***",
	} {
		r, err := m.Disable(t.Context(), "evm", relayer.DisabledReason{Type: "x", Details: details})
		if err != nil || r.DisabledReason.Details != want {
			t.Errorf("%d bytes are stored as %d, want %d, error %v", len(details), len(r.DisabledReason.Details), len(want), err)
		}
	}
}

// A sender can put a URL or a credential in the place of a name or of an ID.
func TestProblems_WithoutSecrets(t *testing.T) {
	m := newManager(t)
	for _, members := range []string{
		`"custom_rpc_urls":[{"https://u:KEY@h.example/KEY":1}]`, `"https://h.example/KEY":1`, `"settings":{"wss://KEY@h.example":1e999}`,
		`"custom_rpc_urls":[{"url":"https://h.example","headers":{"Authorization: Bearer KEY0123456789":"x"}}]`,
	} {
		if err := second(m.Documents().Create(t.Context(), []byte(evmBody(members)))); !errors.Is(err, relayer.ErrInvalid) || strings.Contains(err.Error(), "KEY") {
			t.Errorf("%s: error %v", members, err)
		}
	}
	if err := second(m.Get(t.Context(), "https://u:KEY@h.example/KEY")); !errors.Is(err, relayer.ErrNotFound) || strings.Contains(err.Error(), "KEY") {
		t.Errorf("get: error %v", err)
	}
}

// Each invalid URL has one problem, and the other problems are reported too.
func TestRPCPolicy_WithOtherProblems(t *testing.T) {
	urls := `"custom_rpc_urls":[{"url":"https://a.example"},{"url":"http://10.0.0.1"},{"url":"nothing"},{"url":"http://0"},{"weight":1},{"url":"http://127.1","weight":101}]`
	problems := problemsOf(t, evmBody(urls, `"id":"/"`), relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}))
	wantFields(t, problems, "id", "custom_rpc_urls[1].url", "custom_rpc_urls[2].url", "custom_rpc_urls[3].url", "custom_rpc_urls[4].url", "custom_rpc_urls[5].url", "custom_rpc_urls[5].weight")
}

// Changes of the slices after New have no effect.
func TestRPCPolicy_Copied(t *testing.T) {
	hosts, addresses := []string{"A.example"}, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	m := newManager(t, relayer.WithRPCPolicy(rpcguard.Policy{AllowedHosts: hosts, AllowedAddresses: addresses}))
	if hosts[0] != "A.example" {
		t.Errorf("the host's list was changed to %q", hosts)
	}
	hosts[0], addresses[0] = "b.example", netip.MustParsePrefix("10.0.0.2/32")
	for text, isAllowed := range map[string]bool{"http://a.example": true, "http://10.0.0.1": true, "http://b.example": false, "http://10.0.0.2": false} {
		if _, err := m.Create(t.Context(), withURLs("", text)); (err == nil) != isAllowed {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

// hostKey is a label of a host that looks like a key.
const hostKey = "b33d000011112222333344445555aaaa"

// The policy is applied to the real host, and again only if the URL is given again: if it
// is sealed, a patch of another field does not have it.
func TestRPCPolicy_KeyInHost(t *testing.T) {
	const allowed, other = "https://" + hostKey + ".eth.rpc.example", "https://" + hostKey + "0.eth.rpc.example"
	policy := relayer.WithRPCPolicy(rpcguard.Policy{AllowedHosts: []string{hostKey + ".eth.rpc.example"}, PublicOnly: true})
	for name, store := range map[string]relayer.Store{"clear": memory.New(), "sealed": sealing(t, memory.New(), ringOf(t, "k1"))} {
		t.Run(name, func(t *testing.T) {
			m := managerOf(t, store, policy)
			mustCreate(t, m, withURLs("a", allowed))
			if r, err := m.Patch(t.Context(), "a", []byte(`{"name":"changed"}`)); err != nil || r.Name != "changed" {
				t.Errorf("a patch of the name returned %v, error %v", r, err)
			}
			for _, url := range []string{other, "https://eth.rpc.example"} {
				problems := fieldErrors(t, second(m.Patch(t.Context(), "a", patchOfURLs(t, withURLs("", url).CustomRPCURLs))))
				if problems[0] != (relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must have a host that is allowed here"}) {
					t.Errorf("%s: %+v", url, problems)
				}
			}
			expectURLs(t, m, "a", allowed)
			if document := storedDocument(t, m, "a"); !strings.Contains(document, `"https://***.eth.rpc.example"`) || strings.Contains(document, hostKey) {
				t.Errorf("stored %s", document)
			}
			for id, err := range m.Check(t.Context()) {
				t.Errorf("check of %s: %v", id, err)
			}
		})
	}
}

// engineSettings has a field of each kind that encoding/json decodes in another way.
type engineSettings struct {
	MaxInFlight int               `json:"max_in_flight" validate:"omitempty,gte=1,lte=100"`
	Tip         *float64          `json:"tip" validate:"omitnil,gt=0"`
	Mode        string            `json:"mode" validate:"omitempty,oneof=fast safe"`
	Timeouts    map[string]uint16 `json:"timeouts" validate:"dive,gte=1"`
	Contracts   []contract        `json:"contracts" validate:"max=2,dive"`
	Started     time.Time         `json:"started,omitzero"`
	Strict      bool
	Hidden      string `json:"-"`
	common
}

type common struct {
	Owner string `json:"owner" validate:"max=3"`
	Nonce int64  `json:"nonce,string,omitempty"`
}

type contract struct {
	Address string `json:"address" validate:"required"`
	Key     key    `json:"key"`
}

type key []byte

func withSettings(id, settings string) relayer.CreateRequest {
	req := minimal(id)
	req.Settings = json.RawMessage(settings)
	return req
}

// Settings are the last member of the document, with sorted names and without nulls, however they
// were written, and have their paths in the history and the feed.
func TestSettings_EveryWrite(t *testing.T) {
	ctx := t.Context()
	m := newManager(t)
	document := mustCreateDocument(t, m, evmBody(`"settings":{"b":{"y":1.50,"x":null,"w":[ null, {"b":1,"a":2} ]},"a":"é"},"labels":{"team":"a"},"id":"r"`))
	const stored = `,"labels":{"team":"a"},"settings":{"a":"é","b":{"w":[null,{"a":2,"b":1}],"y":1.50}}}`
	if !strings.HasSuffix(string(document.JSON), stored) {
		t.Errorf("stored %s", document.JSON)
	}
	same := updating(func(r *relayer.Relayer) {
		r.Settings = json.RawMessage(` {"b":{"y":1.50,"w":[null,{"b":1,"a":2}]},"a":"\u00e9"}`)
	})
	if r := must(same(m, ctx, "r"))(t); r.Revision != document.Revision {
		t.Errorf("the same settings made revision %d", r.Revision)
	}
	patched := must(m.Patch(ctx, "r", []byte(`{"settings":{"b":{"w":null,"z":true},"c":null}}`)))(t)
	if string(patched.Settings) != `{"a":"é","b":{"y":1.50,"z":true}}` || !slices.Equal(patched.LastChange.Changed, []string{"settings.b.w", "settings.b.z"}) {
		t.Errorf("patched to %s, changed %q", patched.Settings, patched.LastChange.Changed)
	}
	if cleared := must(m.Patch(ctx, "r", []byte(`{"settings":null}`)))(t); cleared.Settings != nil {
		t.Errorf("cleared to %s", cleared.Settings)
	}
	past, _, err := m.History(ctx, relayer.HistoryQuery{ID: "r"})
	if err != nil || len(past) != 3 || past[0].Relayer.Settings != nil || string(past[1].Relayer.Settings) != string(patched.Settings) {
		t.Errorf("history %+v, error %v", past, err)
	}
}

func TestSettings_Refused(t *testing.T) {
	text := strings.Repeat("x", 16<<10-len(`{"a":""}`))
	for settings, want := range map[string]string{
		`[]`:                        "settings",
		`"x"`:                       "settings",
		`5`:                         "settings",
		`{"a":{"b":1,"b":1}}`:       "settings.a.b",
		`{"a":[{},{"b":1,"b":1}]}`:  "settings.a[1].b",
		`{"a":"\ud800"}`:            "settings.a",
		`{"a":["\u0000"]}`:          "settings.a[0]",
		`{"a":[1e308,-1E-1000000]}`: "settings.a[1]",
		`{"a":{"b":1e309}}`:         "settings.a.b",
		// The largest float, and a longer number.
		`{"a":1.7976931348623157e308,"b":1` + strings.Repeat("0", 400) + `}`: "settings.b",
		`{"":{"a\u0000":1}}`:                                                "settings.a\x00",
		`{"\udc00":1}`:                                                      "settings.\ufffd",
		`{"a":"https://me:KEY@h.example"}`:                                  "settings.a",
		`{"a":{"https://u:KEY@h.example":1}}`:                               "settings.a",
		`{"a":["wss://KEY@h.example/p"]}`:                                   "settings.a[0]",
		`{"a":"https://a.example,https://u:KEY@b.example"}`:                 "settings.a",
		`{"a":"x https://a.example/ https://u:KEY@b/"}`:                     "settings.a",
		`{"a":"postgres://u:KEY/w@h/db"}`:                                   "settings.a",
		`{"a":"postgres://u:KEY?w@h/db"}`:                                   "settings.a",
		`{"a":"https://u:my KEY@h.example"}`:                                "settings.a",
		`{"a":"postgres://u:77777/KEY@h/db"}`:                               "settings.a",
		`{"` + text[:300] + `":{"b":1,"b":1}}`:                              "settings.….b",
		`{"a":"` + text + `x"}`:                                             "settings",
		`{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`:   "settings",
		`{"a":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`: "settings",
	} {
		if problems := wantRefused(t, `"settings":`+settings, []string{want}); strings.Contains(problems[0].Message, "KEY") {
			t.Errorf("the message %q repeats a secret", problems[0].Message)
		}
		wantFields(t, fieldErrors(t, second(newManager(t).Create(t.Context(), withSettings("other", settings)))), want)
	}
	// A name with a dot is not a member of another member.
	wantRefused(t, `"settings":{"a":1e309,"a.b":1e309}`, []string{"settings.a", "settings.a.b"})
	for _, settings := range []string{
		`{}`, `{"":1}`, `{"a":"` + text + `"}`, `{"a":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
		`{"a":"mail me@h.example, or https://h.example/a@b?c=d@e"}`, `{"a":"https://h.example:8545/a@b wss://[::1]:1/a@b"}`,
		`{"a":"see https://wiki.example, ask ops@example.com"}`,
	} {
		document := mustCreateDocument(t, newManager(t), evmBody(`"settings":`+settings))
		if !strings.HasSuffix(string(document.JSON), `,"settings":`+settings+`}`) {
			t.Errorf("%.100s is stored as %.600s", settings, document.JSON)
		}
	}
	if r := mustCreate(t, newManager(t), withSettings("r", "null")); r.Settings != nil {
		t.Errorf("null is stored as %s", r.Settings)
	}
	// Not JSON, and texts that no request in JSON has.
	for _, settings := range []string{`{`, `{"a":1} {}`, "{\"a\":\"\xff\"}", ` `} {
		_, err := newManager(t).Create(t.Context(), withSettings("r", settings))
		wantFields(t, fieldErrors(t, err), "settings")
		_, err = withSettings("r", settings).MarshalUnmasked()
		wantFields(t, fieldErrors(t, err), "settings")
	}
}

func TestWithSettings_MapOfNumbersAndFieldWithoutName(t *testing.T) {
	type limit struct {
		Max int `json:"max"`
	}
	type hostSettings struct {
		Limits map[uint64]limit `json:"limits"`
		Ready  bool             `json:"-" validate:"required"`
	}
	err := withSettings("r", `{"limits":{"1":{"max":1,"MAX":2},"137":{"max":"x"}}}`).Validate(t.Context(), relayer.WithSettings[hostSettings]())
	wantFields(t, fieldErrors(t, err), "settings.limits.1.MAX", "settings.limits.137.max", "settings")
}

func TestWithSettings(t *testing.T) {
	ctx := t.Context()
	m := newManager(t, relayer.WithSettings[engineSettings]())
	const valid = `{"max_in_flight":5,"tip":0.5,"mode":"fast","timeouts":{"send":3},"contracts":[{"address":"a","key":"AAE="}],` +
		`"started":"2026-01-02T03:04:05Z","Strict":true,"owner":"o","nonce":"7"}`
	created := mustCreate(t, m, withSettings("r", valid))
	got, err := relayer.SettingsOf[engineSettings](created)
	want := engineSettings{
		5, new(0.5), "fast", map[string]uint16{"send": 3}, []contract{{"a", []byte{0, 1}}}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), true, "", common{"o", 7},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("settings %+v, error %v, want %+v", got, err, want)
	}
	if none, err := relayer.SettingsOf[engineSettings](mustCreate(t, m, minimal("none"))); err != nil || !reflect.DeepEqual(none, engineSettings{}) {
		t.Errorf("no settings are %+v, error %v", none, err)
	}
	for settings, want := range map[string][]string{
		`{"max_in_flight":101,"mode":"slow","tip":0}`:                           {"settings.max_in_flight", "settings.mode", "settings.tip"},
		`{"max_in_flight":1.5,"tip":"x","mode":5,"Strict":"true"}`:              {"settings.max_in_flight", "settings.tip", "settings.mode", "settings.Strict"},
		`{"unknown":1,"MAX_IN_FLIGHT":1,"strict":true,"Hidden":"","-":""}`:      {"settings.unknown", "settings.MAX_IN_FLIGHT", "settings.strict", "settings.Hidden", "settings.-"},
		`{"timeouts":{"send":65536,"get":-1},"common":{},"started":"today"}`:    {"settings.timeouts.send", "settings.timeouts.get", "settings.common", "settings.started"},
		`{"contracts":[{"address":"a","addres":""},{"address":"a","key":"%"}]}`: {"settings.contracts[0].addres", "settings.contracts[1].key"},
		`{"contracts":[{},{"address":"a"},{"address":""}]}`:                     {"settings.contracts"},
		`{"contracts":[{"address":""}],"timeouts":[],"owner":{}}`:               {"settings.timeouts", "settings.owner", "settings.contracts[0].address"},
		`{"owner":"four","max_in_flight":0,"contracts":[{}]}`:                   {"settings.contracts[0].address", "settings.owner"},
		`{"max_in_flight":101,"unknown":1,"started":"today"}`:                   {"settings.unknown", "settings.started"},
		`{"max_in_flight":101,"unknown":1,"contracts":[{"addres":"a"}]}`:        {"settings.unknown", "settings.max_in_flight", "settings.contracts[0].addres", "settings.contracts[0].address"},
		`{"timeouts":{"send":"x","get":0}}`:                                     {"settings.timeouts.send", "settings.timeouts.get"},
		`{"contracts":[{"address":""},{}]}`:                                     {"settings.contracts[0].address", "settings.contracts[1].address"},
		`{"max_in_flight":99999999999999999999,"contracts":{"0":{}}}`:           {"settings.max_in_flight", "settings.contracts"},
	} {
		t.Run(settings, func(t *testing.T) {
			option, req := relayer.WithSettings[engineSettings](), withSettings("new", settings)
			wantRefused(t, `"settings":`+settings, want, option)
			for _, err := range []error{
				second(m.Create(ctx, req)), req.Validate(ctx, option),
				second(updating(func(r *relayer.Relayer) { r.Settings = json.RawMessage(settings) })(m, ctx, "none")),
			} {
				wantFields(t, fieldErrors(t, err), want...)
			}
		})
	}
	for settings, want := range map[string]string{
		`{"contracts":[{"address":"a","key":5}]}`: "must be a string in base64",
		`{"max_in_flight":1.5}`:                   "must be a whole number of at most 64 bits, without a point or an exponent",
		`{"timeouts":{"send":65536}}`:             "must be a whole number of 0 or more, of at most 16 bits, without a point or an exponent",
		`{"tip":"x"}`:                             "must be a number",
	} {
		problems := problemsOf(t, evmBody(`"settings":`+settings), relayer.WithSettings[engineSettings]())
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%s: problems %q, want %q", settings, problems, want)
		}
	}
	// A type without a name, and an embedded one that has a name in JSON.
	unnamed := relayer.WithSettings[struct {
		contract `json:"contract"`
		Max      int `json:"max" validate:"gte=1"`
		Min      int `json:"min" validate:"gte=1"`
	}]()
	wantFields(t, fieldErrors(t, withSettings("r", `{"address":"a"}`).Validate(ctx, unnamed)),
		"settings.address", "settings.contract.address", "settings.max", "settings.min")
	outer := relayer.WithSettings[struct {
		Who int `json:"owner"`
		common
	}]()
	wantFields(t, fieldErrors(t, withSettings("r", `{"owner":5,"unknown":1}`).Validate(ctx, outer)), "settings.unknown")
	other := mustCreate(t, newManager(t), withSettings("r", `{"old":1}`))
	must(relayer.SettingsOf[engineSettings](other))(t)
	if _, err := relayer.SettingsOf[struct{ Old string }](other); err == nil || errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("settings of another type: error %v", err)
	}
	// A patch is checked with what it is merged into.
	must(m.Patch(ctx, "r", []byte(`{"settings":{"contracts":[],"mode":null,"max_in_flight":100}}`)))(t)
}
