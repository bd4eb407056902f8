package relayer_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/go-relayer/relayer"
)

// richRequest has something of everything that is shared by reference.
func richRequest() relayer.CreateRequest {
	return relayer.CreateRequest{
		ID: "rich", Name: "n", Network: "devnet", NetworkType: relayer.Solana, SignerID: "s",
		CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example/key"}, {URL: "https://b.example", Weight: new(1.0)}},
		Policies: &relayer.SolanaPolicy{
			AllowedAccounts: []string{"a"},
			AllowedTokens:   []relayer.SolanaAllowedToken{{Mint: "m", Decimals: new(uint8(6)), SwapConfig: &relayer.TokenSwapConfig{MinAmount: new(uint64(1))}}},
			MinBalance:      new(int64(1)),
			SwapConfig:      &relayer.SolanaSwapConfig{Strategy: new(relayer.JupiterSwap)},
		},
	}
}

// scramble changes everything that a Solana relayer and its endpoints reach.
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
	*solana.SwapConfig.Strategy = relayer.NoSwap
	solana.FeePaymentStrategy = new(relayer.FeePaidByRelayer)
}

// TestCreateLeavesTheRequest: the defaults go into what is stored, not into the
// caller's request.
func TestCreateLeavesTheRequest(t *testing.T) {
	req := richRequest()
	mustCreate(t, newManager(t), req)
	if !reflect.DeepEqual(req, richRequest()) {
		t.Errorf("Create changed its request to %#v", req)
	}
}

// TestStoredIsApart: what is stored changes neither with the request nor with
// anything that was read.
func TestStoredIsApart(t *testing.T) {
	ctx := context.Background()
	m := newManager(t)
	req := richRequest()
	created := mustCreate(t, m, req)
	pristine, err := m.Get(ctx, "rich")
	if err != nil {
		t.Fatal(err)
	}
	document := storedDocument(t, m, "rich")

	scramble(req.CustomRPCURLs, req.Policies)
	if !reflect.DeepEqual(created, pristine) {
		t.Error("the created relayer shares memory with the request")
	}
	scramble(created.CustomRPCURLs, created.Policies)
	read, err := m.Get(ctx, "rich")
	if err != nil {
		t.Fatal(err)
	}
	scramble(read.CustomRPCURLs, read.Policies)
	page, err := m.List(ctx, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	scramble(page.Relayers[0].CustomRPCURLs, page.Relayers[0].Policies)
	one, _, err := m.AppendDocument(ctx, nil, "rich")
	if err != nil {
		t.Fatal(err)
	}
	clear(one)
	all, _, err := m.AppendDocuments(ctx, nil, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	clear(all)

	if again, err := m.Get(ctx, "rich"); err != nil || !reflect.DeepEqual(again, pristine) {
		t.Errorf("stored %#v, %v, want %#v", again, err, pristine)
	}
	if again := storedDocument(t, m, "rich"); again != document {
		t.Errorf("stored %s, want %s", again, document)
	}
}

// TestCreateDocumentLeavesTheBody: the body is the caller's, before and after.
func TestCreateDocumentLeavesTheBody(t *testing.T) {
	for _, full := range fullRelayers {
		m := newFullManager(t)
		body := []byte(full.request)
		created, err := m.CreateDocument(context.Background(), body)
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

// TestRevision: a relayer tells the revision that its record has.
func TestRevision(t *testing.T) {
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

// TestDoneContext: nothing is created once the caller has gone.
func TestDoneContext(t *testing.T) {
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
