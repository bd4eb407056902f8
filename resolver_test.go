package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// TestAddress: the address is the resolver's answer to signer and network.
func TestAddress(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "caller's")
	resolve := func(ctx context.Context, signerID string, networkType relayer.NetworkType, network string) (string, error) {
		return fmt.Sprint(ctx.Value(key{}), "/", signerID, "/", networkType, "/", network), nil
	}
	m := newManager(t, relayer.WithAddressResolver(resolve))
	const want = "caller's/s/stellar/w"
	document, err := m.CreateDocument(ctx, []byte(body("stellar", `"id":"a"`)))
	if err != nil || member(t, document.JSON, "address") != `"`+want+`"` {
		t.Errorf("document %s, %v", document.JSON, err)
	}
	r, err := m.Get(context.Background(), "a")
	if err != nil || r.Address != want {
		t.Errorf("address %q, %v, want %q", r.Address, err, want)
	}
	// Reading asks nobody: the answer is what is stored.
	without := mustCreateDocument(t, newManager(t), evmBody())
	if got := member(t, without.JSON, "address"); got != `""` {
		t.Errorf("address without a resolver: %s", got)
	}
}

func unknownSigner(context.Context, string, relayer.NetworkType, string) (string, error) {
	return "ignored", fmt.Errorf("no key s in secret-vault-7: %w", relayer.ErrUnknownSigner)
}

// TestUnknownSigner: it is a problem of the request, told with the others and
// without the host's words.
func TestUnknownSigner(t *testing.T) {
	option := relayer.WithAddressResolver(unknownSigner)
	problems := problemsOf(t, evmBody(), option)
	wantFields(t, problems, "signer_id")
	for _, secret := range []string{"vault", "no key"} {
		if contains(problems, secret) {
			t.Errorf("problems %+v tell %q", problems, secret)
		}
	}
	wantFields(t, problemsOf(t, evmBody(`"id":"a b"`, `"x":1`, `"policies":{"min_balance":-1}`), option), "id", "x", "policies.min_balance", "signer_id")

	_, err := newManager(t, option).Create(context.Background(), minimal(""))
	wantFields(t, fieldErrors(t, err), "signer_id")
}

// TestResolverFault: any other error is the host's, and is passed on.
func TestResolverFault(t *testing.T) {
	fault := errors.New("vault sealed")
	m := newManager(t, relayer.WithAddressResolver(func(context.Context, string, relayer.NetworkType, string) (string, error) {
		return "0x1", fault
	}))
	ctx := context.Background()
	_, err := m.Create(ctx, minimal("a"))
	if !errors.Is(err, fault) || errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("Create: %v", err)
	}
	if _, err := m.CreateDocument(ctx, []byte(evmBody(`"id":"a"`))); !errors.Is(err, fault) {
		t.Errorf("CreateDocument: %v", err)
	}
	if _, err := m.Get(ctx, "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("stored all the same: %v", err)
	}
	// A request that is wrong anyway is told so, whatever the resolver is up to.
	_, err = m.CreateDocument(ctx, []byte(evmBody(`"x":1`)))
	wantFields(t, fieldErrors(t, err), "x")
}

const (
	evmAddress     = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	solanaAddress  = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	stellarAddress = "GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN"
)

// TestAddressResolver_InvalidAddress: an address that cannot be stored is a fault
// of the host and no problem of the request.
func TestAddressResolver_InvalidAddress(t *testing.T) {
	anyNetwork := []string{
		"not an address\n\x00", "0x1\x00", "0x1\xff", "\xc0\xaf", "0x1\n", " 0x1", "0x1\t", "0x1\x7f", "0x1\u0085", "0x1\u2028", "0x1\u202e",
		"https://user:SECRET@rpc.example/v2", "redis://:SECRET@db", strings.Repeat("a", 257),
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
	return relayer.WithAddressResolver(func(context.Context, string, relayer.NetworkType, string) (string, error) { return address, nil })
}

// wantHostFault fails unless a create with this address fails without blaming or
// quoting anything, and stores nothing.
func wantHostFault(t *testing.T, networkType relayer.NetworkType, address string, options ...relayer.Option) {
	t.Helper()
	m := newManager(t, append(options, withAddress(address))...)
	req := minimal("a")
	req.NetworkType = networkType
	_, err := m.Create(t.Context(), req)
	_, wireErr := m.CreateDocument(t.Context(), []byte(body(string(networkType), `"id":"a"`)))
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

// TestAddressResolver_ValidAddress covers what only looks wrong.
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

// TestResolverNotAsked: a signer and a network that cannot be are no question.
func TestResolverNotAsked(t *testing.T) {
	asked := 0
	m := newManager(t, relayer.WithAddressResolver(func(context.Context, string, relayer.NetworkType, string) (string, error) {
		asked++
		return "", nil
	}))
	for _, path := range []string{"signer_id", "network", "network_type"} {
		for _, wrong := range []string{`""`, `5`, `null`, `"\u0000"`} {
			if _, err := m.CreateDocument(context.Background(), []byte(replaced(t, evmBody(), path, wrong))); !errors.Is(err, relayer.ErrInvalid) {
				t.Errorf("%s %s: %v", path, wrong, err)
			}
		}
	}
	if asked != 0 {
		t.Errorf("the resolver was asked %d times", asked)
	}
	mustCreate(t, m, minimal(""))
	if asked != 1 {
		t.Errorf("the resolver was asked %d times for one relayer", asked)
	}
}

// TestNewErrors: what is wrong in the host's set-up shows at the start.
func TestNewErrors(t *testing.T) {
	if m, err := relayer.New(nil); err == nil || m != nil {
		t.Errorf("no store: %v, %v", m, err)
	}
	for name, option := range map[string]relayer.Option{
		"nil option":       nil,
		"nil resolver":     relayer.WithAddressResolver(nil),
		"nil guard":        relayer.WithDeleteGuard(nil),
		"nil observer":     relayer.WithObserver(nil),
		"nil logger":       relayer.WithLogger(nil),
		"no room per page": relayer.WithMaxPerPage(0),
	} {
		if m, err := relayer.New(memory.New(), relayer.WithMaxPerPage(1), option); err == nil || m != nil {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
