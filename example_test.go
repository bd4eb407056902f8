package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

// Create a relayer and read it back.
func Example() {
	ctx := context.Background()
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	_, err = manager.Create(ctx, relayer.CreateRequest{
		ID:          "sepolia-1",
		Name:        "Sepolia",
		Network:     "sepolia",
		NetworkType: relayer.EVM,
		SignerID:    "local-signer",
	})
	if err != nil {
		log.Fatal(err)
	}

	r, err := manager.Get(ctx, "sepolia-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Name, "on", r.Network, "signed by", r.SignerID)

	_, err = manager.Get(ctx, "mainnet-1")
	fmt.Println(errors.Is(err, relayer.ErrNotFound))
	// Output:
	// Sepolia on sepolia signed by local-signer
	// true
}

// RPC URLs are masked if they are printed. The conversion to string is for the code
// that calls the endpoint.
func ExampleRPCURL() {
	endpoint := relayer.RPCURL("https://eth-mainnet.g.alchemy.com/v2/api-key")
	fmt.Println(endpoint)
	fmt.Println(len(string(endpoint)))
	// Output:
	// https://eth-mainnet.g.alchemy.com/***
	// 44
}

// Create a relayer from a file with the body of a request, and print the document of
// the response.
func ExampleDocuments_Create() {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	body, err := os.ReadFile("testdata/stellar.json")
	if err != nil {
		log.Fatal(err)
	}
	document, err := manager.Documents().Create(context.Background(), body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(document.JSON))

	r, err := manager.Get(context.Background(), document.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(r.CustomRPCURLs[0].URL))
	// Output:
	// {"id":"stellar-1","name":"Stellar","network":"testnet","network_type":"stellar","address":"","paused":false,"system_disabled":false,"signer_id":"local-signer","custom_rpc_urls":[{"url":"https://stellar.example/***","weight":60}],"policies":{"fee_payment_strategy":"relayer","max_fee":1000000}}
	// https://stellar.example/rpc/api-key
}

// threeRelayers returns a registry with relayers of two teams.
func threeRelayers(options ...relayer.Option) *relayer.Manager {
	manager, err := relayer.New(memory.New(), options...)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range []struct{ id, team string }{{"treasury", "payments"}, {"oracle", "risk"}, {"bridge", "risk"}} {
		_, err := manager.Create(context.Background(), relayer.CreateRequest{
			ID: r.id, Name: r.id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
			Labels: map[string]string{"team": r.team},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	return manager
}

// Pages start at 1, and are in creation order.
func ExampleManager_List() {
	manager := threeRelayers()
	for number := 1; ; number++ {
		page, err := manager.List(context.Background(), relayer.ListQuery{Page: number, PerPage: 2})
		if err != nil {
			log.Fatal(err)
		}
		if len(page.Relayers) == 0 {
			break
		}
		fmt.Printf("page %d of %d relayers:\n", page.Pagination.CurrentPage, page.Pagination.TotalItems)
		for _, r := range page.Relayers {
			fmt.Println(" ", r.ID)
		}
	}
	// Output:
	// page 1 of 3 relayers:
	//   treasury
	//   oracle
	// page 2 of 3 relayers:
	//   bridge
}

// A relayer that exists during the whole iteration is returned once, despite concurrent
// creates and deletes.
func ExampleManager_All() {
	manager := threeRelayers()
	for r, err := range manager.All(context.Background(), relayer.Selector{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.ID)
	}
	// Output:
	// treasury
	// oracle
	// bridge
}

// Every field of a policy is optional; new returns a pointer to a value.
func ExamplePolicy() {
	r, err := threeRelayers().Create(context.Background(), relayer.CreateRequest{
		Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
		Policy: &relayer.EVMPolicy{
			EIP1559Pricing:     new(true),
			GasPriceCap:        new(relayer.Gwei(30)),
			MinBalance:         new(relayer.Ether(1)),
			WhitelistReceivers: []string{"0x6b175474e89094c44da98b954eedeac495271d0f"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	switch policy := r.Policy.(type) {
	case *relayer.EVMPolicy:
		fmt.Println("stops below", policy.MinBalance, "wei; private transactions set:", policy.PrivateTransactions != nil)
	case *relayer.SolanaPolicy:
		fmt.Println("fees paid by", *policy.FeePaymentStrategy)
	case *relayer.StellarPolicy:
		fmt.Println("waits", policy.TimeoutSeconds)
	default:
		fmt.Println("a newer version created the relayer")
	}
	// Output:
	// stops below 1000000000000000000 wei; private transactions set: false
}

// A host with untrusted clients permits the endpoints of two providers, and its own
// node.
func ExampleWithRPCPolicy() {
	policy := rpcguard.Policy{
		AllowedHosts:     []string{"*.g.alchemy.com", "rpc.example.com"},
		AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")},
		PublicOnly:       true,
		RefuseUserInfo:   true,
	}
	manager, err := relayer.New(memory.New(), relayer.WithRPCPolicy(policy))
	if err != nil {
		log.Fatal(err)
	}
	for _, endpoint := range []relayer.RPCURL{
		"https://eth-mainnet.g.alchemy.com/v2/api-key",
		"http://10.1.2.3:8545",
		"https://rpc.example.net",
		"http://2130706433:8545",
		"https://user:password@rpc.example.com",
	} {
		_, err := manager.Create(context.Background(), relayer.CreateRequest{
			Name:          "Mainnet",
			Network:       "mainnet",
			NetworkType:   relayer.EVM,
			SignerID:      "local-signer",
			CustomRPCURLs: []relayer.RPCConfig{{URL: endpoint}},
		})
		fmt.Println(endpoint, err)
	}
	// Output:
	// https://eth-mainnet.g.alchemy.com/*** <nil>
	// http://10.1.2.3:8545 <nil>
	// https://rpc.example.net relayer: create: invalid relayer: custom_rpc_urls[0].url must have a host that is allowed here
	// http://2130706433:8545 relayer: create: invalid relayer: custom_rpc_urls[0].url must have a host that is allowed here
	// https://rpc.example.com relayer: create: invalid relayer: custom_rpc_urls[0].url must not contain user information
}

func ExampleParseSelector() {
	selector, err := relayer.ParseSelector("network=sepolia,label.team=payments|treasury")
	if err != nil {
		log.Fatal(err)
	}
	page, err := threeRelayers().List(context.Background(), relayer.ListQuery{Selector: selector})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.Pagination.TotalItems, page.Relayers[0].ID)
	// Output: 1 treasury
}

func ExampleSelector_Where() {
	active := relayer.Selector{}.Where("paused", "false").Where("system_disabled", "false")
	fmt.Println(active.Where("network", "mainnet", "sepolia"))
	// Output: network=mainnet|sepolia,paused=false,system_disabled=false
}

// A team sees and changes only its own relayers.
func ExampleManager_Within() {
	ctx := context.Background()
	payments := threeRelayers().Within(relayer.Selector{}.Where("label.team", "payments"))

	_, err := payments.Pause(ctx, "oracle")
	fmt.Println(errors.Is(err, relayer.ErrNotFound))
	_, err = payments.Patch(ctx, "treasury", []byte(`{"labels":{"team":"risk"}}`))
	fmt.Println(err)
	// Output:
	// true
	// relayer: update treasury: invalid relayer: labels.team must be "payments", to which the access is limited
}

// A host that relays transactions refuses to delete a relayer that still has some.
func ExampleWithAdmission() {
	pending := map[string]int{"treasury": 3}
	manager := threeRelayers(relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action != relayer.ActionDelete || pending[old.ID] == 0 {
			return nil
		}
		return relayer.Refuse(fmt.Sprintf("%d transactions are pending", pending[old.ID]))
	}))
	fmt.Println(manager.Delete(context.Background(), "treasury"))
	// Output: relayer: delete treasury: invalid relayer: 3 transactions are pending
}

// In an incident everything of a team is paused, and later exactly that is resumed.
func ExampleManager_PauseAll() {
	ctx := context.Background()
	manager := threeRelayers()
	if _, err := manager.Pause(ctx, "oracle"); err != nil { // before the incident
		log.Fatal(err)
	}

	sepolia := relayer.Selector{}.Where("network", "sepolia")
	paused, err := manager.PauseAll(ctx, sepolia, relayer.Reason("incident 42"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(paused.Changed, "paused,", paused.Unchanged, "paused before,", len(paused.Failed), "failed")

	resumed, err := manager.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.PausedBy(paused.RequestID))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resumed.Changed, "resumed,", resumed.Unchanged, "unchanged")
	// Output:
	// 2 paused, 1 paused before, 0 failed
	// 2 resumed, 1 unchanged
}

// A dry run returns what the write would return.
func ExampleDryRun() {
	ctx := context.Background()
	manager := threeRelayers()
	changed, err := manager.Patch(ctx, "treasury", []byte(`{"name":"Treasury"}`), relayer.DryRun())
	if err != nil {
		log.Fatal(err)
	}
	stored, err := manager.Get(ctx, "treasury")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changed.Name, stored.Name)
	// Output: Treasury treasury
}

// An audit log has who changed what.
func ExampleWithObserver() {
	manager := threeRelayers(relayer.WithObserver(func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		return ctx, func(err error) {
			if operation.Action.IsWrite() && operation.Action != relayer.ActionCreate {
				fmt.Println(operation.Actor.ID, operation.Action, operation.ID, operation.Changed, err)
			}
		}
	}))
	ctx := relayer.WithActor(context.Background(), relayer.Actor{ID: "ann"})
	if _, err := manager.Pause(ctx, "treasury"); err != nil {
		log.Fatal(err)
	}
	// Output: ann pause treasury [paused] <nil>
}

// All problems of a request are reported at once.
func ExampleValidationError() {
	_, err := threeRelayers().Create(context.Background(), relayer.CreateRequest{
		Name:          "Solana",
		NetworkType:   relayer.Solana,
		Network:       "devnet",
		SignerID:      "local-signer",
		CustomRPCURLs: []relayer.RPCConfig{{URL: "devnet.example", Weight: new(101.0)}},
		Policy:        &relayer.SolanaPolicy{MaxSignatures: new(int32(-1))},
	})
	var invalid *relayer.ValidationError
	if errors.As(err, &invalid) {
		for _, problem := range invalid.Fields {
			fmt.Println(problem.Field, problem.Message)
		}
	}
	// Output:
	// custom_rpc_urls[0].url must be an absolute http, https, ws or wss URL with a host
	// custom_rpc_urls[0].weight must be at most 100
	// policies.max_signatures must be 0 or more
}

// A host with signers returns the address of each, and an error for unknown ones.
func ExampleWithAddressResolver() {
	addresses := map[string]string{"local-signer": "0x6b175474e89094c44da98b954eedeac495271d0f"}
	resolve := func(_ context.Context, req relayer.CreateRequest) (string, error) {
		address, ok := addresses[req.SignerID]
		if !ok {
			return "", relayer.ErrUnknownSigner
		}
		return address, nil
	}
	manager, err := relayer.New(memory.New(), relayer.WithAddressResolver(resolve))
	if err != nil {
		log.Fatal(err)
	}
	for _, signer := range []string{"local-signer", "remote-signer"} {
		r, err := manager.Create(context.Background(), relayer.CreateRequest{
			Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: signer,
		})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(r.Address)
	}
	// Output:
	// 0x6b175474e89094c44da98b954eedeac495271d0f
	// relayer: create: invalid relayer: signer_id must be a signer that exists for this network
}
