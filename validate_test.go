package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

func TestAddressResolver_Address(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "caller's")
	resolve := func(ctx context.Context, req relayer.CreateRequest) (string, error) {
		return fmt.Sprint(ctx.Value(key{}), "/", req.SignerID, "/", req.NetworkType, "/", req.Network), nil
	}
	m := newManager(t, relayer.WithAddressResolver(resolve))
	const want = "caller's/s/stellar/w"
	document, err := m.Documents().Create(ctx, []byte(body("stellar", `"id":"a"`)))
	if err != nil || member(t, document.JSON, "address") != `"`+want+`"` {
		t.Errorf("document %s, %v", document.JSON, err)
	}
	r, err := m.Get(context.Background(), "a")
	if err != nil || r.Address != want {
		t.Errorf("address %q, %v, want %q", r.Address, err, want)
	}
	// Reads return the stored address without a call of the resolver.
	without := mustCreateDocument(t, newManager(t), evmBody())
	if got := member(t, without.JSON, "address"); got != `""` {
		t.Errorf("address without a resolver: %s", got)
	}
}

func unknownSigner(context.Context, relayer.CreateRequest) (string, error) {
	return "ignored", fmt.Errorf("no key s in secret-vault-7: %w", relayer.ErrUnknownSigner)
}

// An unknown signer is a problem of the request, reported with the others and without
// the text of the host's error.
func TestAddressResolver_UnknownSigner(t *testing.T) {
	option := relayer.WithAddressResolver(unknownSigner)
	problems := problemsOf(t, evmBody(), option)
	wantFields(t, problems, "signer_id")
	for _, secret := range []string{"vault", "no key"} {
		if contains(problems, secret) {
			t.Errorf("problems %+v contain %q", problems, secret)
		}
	}
	wantFields(t, problemsOf(t, evmBody(`"id":"a b"`, `"x":1`, `"policies":{"min_balance":-1}`), option), "id", "x", "policies.min_balance", "signer_id")

	_, err := newManager(t, option).Create(context.Background(), minimal(""))
	wantFields(t, fieldErrors(t, err), "signer_id")
}

// Any other error of the resolver is returned.
func TestAddressResolver_Error(t *testing.T) {
	fault := errors.New("vault sealed")
	invalid := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "signer_id", Message: "at https://vault.example/KEY"}}}
	m := newManager(t, relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) {
		return "0x1", errors.Join(fault, invalid)
	}))
	ctx := context.Background()
	_, err := m.Create(ctx, minimal("a"))
	if _, isInvalid := errors.AsType[*relayer.ValidationError](err); isInvalid || !errors.Is(err, fault) || errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("Create: %v", err)
	}
	if strings.Contains(err.Error(), "KEY") {
		t.Errorf("the error has a full URL: %v", err)
	}
	if _, err := m.Documents().Create(ctx, []byte(evmBody(`"id":"a"`))); !errors.Is(err, fault) {
		t.Errorf("CreateDocument: %v", err)
	}
	if _, err := m.Get(ctx, "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("stored all the same: %v", err)
	}
	// The problems of an invalid request come before an error of the resolver.
	_, err = m.Documents().Create(ctx, []byte(evmBody(`"x":1`)))
	wantFields(t, fieldErrors(t, err), "x")
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
		"https://user:SECRET@rpc.example/v2", "redis://:SECRET@db", "user:SECRET@host", strings.Repeat("a", 257),
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
	_, err := m.Create(t.Context(), req)
	_, wireErr := m.Documents().Create(t.Context(), []byte(body(string(networkType), `"id":"a"`)))
	for _, err := range []error{err, wireErr} {
		if err == nil || errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%s address %q: error %v", networkType, address, err)
		} else if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("the error quotes the address: %v", err)
		}
	}
	if _, err := m.Get(t.Context(), "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("%s address %q: stored, error %v", networkType, address, err)
	}
}

func TestAddressResolver_ValidAddress(t *testing.T) {
	for address, networkType := range map[string]relayer.NetworkType{
		evmAddress: relayer.EVM, strings.ToLower(evmAddress): relayer.EVM, solanaAddress: relayer.Solana, stellarAddress: relayer.Stellar,
		"": relayer.EVM, "eip155:1:0x1": relayer.EVM, "bücher": relayer.Solana, strings.Repeat("a", 256): relayer.Stellar,
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

// The resolver is not called for an invalid signer or network.
func TestAddressResolver_InvalidRequest(t *testing.T) {
	calls := 0
	m := newManager(t, relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) {
		calls++
		return "", nil
	}))
	for _, path := range []string{"signer_id", "network", "network_type"} {
		for _, wrong := range []string{`""`, `5`, `null`, `"\u0000"`} {
			if _, err := m.Documents().Create(context.Background(), []byte(replaced(t, evmBody(), path, wrong))); !errors.Is(err, relayer.ErrInvalid) {
				t.Errorf("%s %s: %v", path, wrong, err)
			}
		}
	}
	if calls != 0 {
		t.Errorf("the resolver was calls %d times", calls)
	}
	mustCreate(t, m, minimal(""))
	if calls != 1 {
		t.Errorf("the resolver was calls %d times for one relayer", calls)
	}
}

func TestNetworkRules_OuterSpaces(t *testing.T) {
	store := memory.New()
	lenient, strict := managerOf(t, store), managerOf(t, store, relayer.WithNetworkRules())
	for _, names := range [][2]string{{" sepolia", "s"}, {"sepolia\t", "s"}, {"sepolia", "\u00a0s"}, {"sepolia", "s "}} {
		req := minimal("a")
		req.Network, req.SignerID = names[0], names[1]
		field := "network"
		if names[0] == "sepolia" {
			field = "signer_id"
		}
		problems := fieldErrors(t, second(strict.Create(t.Context(), req)))
		if !slices.Equal(problems, []relayer.FieldError{{Field: field, Message: "must not begin or end with a space"}}) {
			t.Errorf("%q: %+v", names, problems)
		}
		mustCreate(t, lenient, req)
		// These fields cannot be changed, so that the rule applies only to new relayers.
		if _, err := strict.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "m"})); err != nil {
			t.Errorf("%q stored before: %v", names, err)
		}
		if err := strict.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
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
		"valid":          func(*relayer.CreateRequest) {},
		"empty":          func(r *relayer.CreateRequest) { *r = relayer.CreateRequest{} },
		"network rule":   func(r *relayer.CreateRequest) { r.Policy = &relayer.EVMPolicy{WhitelistReceivers: []string{"x"}} },
		"unknown signer": func(r *relayer.CreateRequest) { r.SignerID = "unknown" },
		"private URL":    func(r *relayer.CreateRequest) { r.CustomRPCURLs = []relayer.RPCConfig{{URL: "http://10.0.0.1"}} },
		"too large":      func(r *relayer.CreateRequest) { r.Name = strings.Repeat("n", 1000) },
		"not UTF-8":      func(r *relayer.CreateRequest) { r.NotificationID = "\xff" },
		"not a number": func(r *relayer.CreateRequest) {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "http://a.example", Weight: new(math.NaN())}}
		},
		"other policy": func(r *relayer.CreateRequest) { r.Policy = &relayer.SolanaPolicy{} },
	} {
		req := minimal("a")
		change(&req)
		got := req.Validate(t.Context(), options...)
		want := second(newManager(t, options...).Create(t.Context(), req))
		if name == "valid" {
			if got != nil || want != nil {
				t.Errorf("%s: %v, create %v", name, got, want)
			}
		} else if got, want := fieldErrors(t, got), fieldErrors(t, want); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	masked := minimal("a")
	masked.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example/***"}}
	if err := masked.Validate(t.Context()); err != nil {
		t.Errorf("a masked URL: %v", err)
	}
	if err := minimal("a").Validate(t.Context(), relayer.Option{}); err == nil || errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("an empty option: %v", err)
	}
}
