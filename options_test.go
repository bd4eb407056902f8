package relayer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

func TestExclusiveSigners_OneRelayerPerSigner(t *testing.T) { eachStore(t, testExclusiveSigners) }

func testExclusiveSigners(t *testing.T, store relayer.Store) {
	m, err := relayer.New(store, relayer.WithExclusiveSigners())
	if err != nil {
		t.Fatal(err)
	}
	request := func(id string) relayer.CreateRequest {
		return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
	}
	for round := range 20 {
		var creators sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			creators.Go(func() { _, errs[i] = m.Create(t.Context(), request(fmt.Sprintf("r-%d", i))) })
		}
		creators.Wait()
		winner := -1
		for i, err := range errs {
			var invalid *relayer.ValidationError
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Fatalf("round %d: %d and %d both have the signer", round, winner, i)
			case !errors.As(err, &invalid) || invalid.Fields[0].Field != "signer_id":
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no relayer has the signer", round)
		}
		id := fmt.Sprintf("r-%d", winner)
		if _, err := m.Pause(t.Context(), id); err != nil {
			t.Fatalf("round %d: pausing the winner: %v", round, err)
		}
		if _, err := m.Create(t.Context(), request("late")); !errors.Is(err, relayer.ErrInvalid) {
			t.Fatalf("round %d: after an update the signer was free: %v", round, err)
		}
		if err := m.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := m.Create(t.Context(), request("taken")); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*relayer.CreateRequest){
		"another network":      func(r *relayer.CreateRequest) { r.Network = "mainnet" },
		"another network type": func(r *relayer.CreateRequest) { r.NetworkType = relayer.Solana },
		"another signer":       func(r *relayer.CreateRequest) { r.SignerID = "t" },
		"names run together":   func(r *relayer.CreateRequest) { r.Network, r.SignerID = "sepolia1", ":s" },
		"names too long":       func(r *relayer.CreateRequest) { r.SignerID = strings.Repeat("s", 10_000) },
	} {
		other := request("")
		change(&other)
		if _, err := m.Create(t.Context(), other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	street := request("")
	street.Network = "straße"
	mustCreate(t, m, street)
	for _, same := range []struct{ network, signer string }{{"Sepolia", "s"}, {" sepolia\u00a0", "s"}, {"sepolia", "\ts "}, {"STRASSE", "s"}} {
		other := request("")
		other.Network, other.SignerID = same.network, same.signer
		wantFields(t, fieldErrors(t, second(m.Create(t.Context(), other))), "signer_id")
	}
	if _, err := m.Create(t.Context(), request("taken")); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("a taken ID, too: %v", err)
	}
	if _, err := registry(t).Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "testnet", NetworkType: relayer.EVM, SignerID: "s-evm"}); err != nil {
		t.Errorf("without the option: %v", err)
	}
}

// Two relayers that shared a signer before signers became exclusive can still be
// paused, which is the first step to resolve it.
func TestExclusiveSigners_SharedBefore(t *testing.T) {
	store := memory.New()
	lenient, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := relayer.New(store, relayer.WithExclusiveSigners())
	if err != nil {
		t.Fatal(err)
	}
	request := relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}
	for _, id := range []string{"first", "second"} {
		request.ID = id
		if _, err := lenient.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"first", "second"} {
		if r, err := strict.Pause(t.Context(), id); err != nil || !r.Paused {
			t.Errorf("pausing %s: %v", id, err)
		}
		if _, err := strict.Documents().Patch(t.Context(), id, []byte(`{"name":"m"}`)); err != nil {
			t.Errorf("patching %s: %v", id, err)
		}
	}
	// The first relayer that was changed has the signer now.
	request.ID = "third"
	if _, err := strict.Create(t.Context(), request); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third: %v", err)
	}
	if err := strict.Delete(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := strict.Resume(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if _, err := strict.Create(t.Context(), request); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third after the second has claimed the signer: %v", err)
	}
}

// The claim of an earlier version, a digest of the names as they are written, is replaced
// by the next change.
func TestExclusiveSigners_ClaimOfEarlierVersion(t *testing.T) {
	store := memory.New()
	const document = `{"id":"old","name":"n","network":"Sepolia","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"s","policies":{}}`
	digest := sha256.Sum256([]byte("3:evm7:Sepolia1:s"))
	if _, err := store.Create(t.Context(), relayer.Record{ID: "old", Claim: "signer-" + hex.EncodeToString(digest[:]), Document: []byte(document)}); err != nil {
		t.Fatal(err)
	}
	m := managerOf(t, store, relayer.WithExclusiveSigners())
	req := minimal("new")
	mustCreate(t, m, req)                                  // not detected: the claims differ
	if _, err := m.Pause(t.Context(), "old"); err != nil { // keeps its claim, because the new one is taken
		t.Fatal(err)
	}
	if err := m.Delete(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Resume(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	wantFields(t, fieldErrors(t, second(m.Create(t.Context(), req))), "signer_id")
}

func TestNew_InvalidOptions(t *testing.T) {
	if m, err := relayer.New(nil); err == nil || m != nil {
		t.Errorf("no store: %v, %v", m, err)
	}
	for name, option := range map[string]relayer.Option{
		"empty option":     {},
		"nil resolver":     relayer.WithAddressResolver(nil),
		"nil admission":    relayer.WithAdmission(nil),
		"nil observer":     relayer.WithObserver(nil),
		"no room per page": relayer.WithMaxPerPage(0),
		"negative pages":   relayer.WithMaxPerPage(-1),
		"too large pages":  relayer.WithMaxPerPage(math.MaxInt32 + 1),
		"no room at all":   relayer.WithMaxRelayerSize(0),
	} {
		if m, err := relayer.New(memory.New(), relayer.WithMaxPerPage(1), option); err == nil || m != nil {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func TestNew_OptionTwice(t *testing.T) {
	resolvesTo := func(address string) relayer.Option {
		return relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) { return address, nil })
	}
	m := newManager(t, resolvesTo("first"), resolvesTo("last"),
		relayer.WithRPCPolicy(rpcguard.Policy{}), relayer.WithRPCPolicy(rpcguard.Policy{PublicOnly: true}))
	if r := mustCreate(t, m, minimal("a")); r.Address != "last" {
		t.Errorf("the address is %q", r.Address)
	}
	wantFields(t, fieldErrors(t, second(m.Create(t.Context(), withURLs("b", "http://10.0.0.1/")))), "custom_rpc_urls[0].url")
}
