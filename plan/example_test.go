package plan_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
)

// Show the differences between a file and a registry, and apply them.
func Example() {
	ctx := context.Background()
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	_, err = manager.Create(ctx, relayer.CreateRequest{
		ID: "sepolia-1", Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
	})
	if err != nil {
		log.Fatal(err)
	}

	config, err := plan.Parse([]byte(`{"relayers": [
		{"id": "sepolia-1", "name": "Sepolia", "network": "sepolia", "network_type": "evm",
		 "paused": true, "signer_id": "local-signer", "policies": {"gas_price_cap": 100000000000}},
		{"id": "devnet-1", "name": "Devnet", "network": "devnet", "network_type": "solana",
		 "paused": false, "signer_id": "local-signer"}
	]}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	changes, err := plan.New(ctx, manager, config.Relayers, plan.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(changes)
	if _, err := changes.Apply(ctx); err != nil {
		log.Fatal(err)
	}

	changes, err = plan.New(ctx, manager, config.Relayers, plan.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(changes)
	// Output:
	// ~ update sepolia-1
	//     paused: false -> true
	//     policies.gas_price_cap: (not set) -> 100000000000
	// + create devnet-1
	//     name: "Devnet"
	//     network: "devnet"
	//     network_type: "solana"
	//     paused: false
	//     policies.fee_payment_strategy: "user"
	//     signer_id: "local-signer"
	// 1 to create, 1 to update, 0 to delete, 0 unchanged
	// 0 to create, 0 to update, 0 to delete, 2 unchanged
}
