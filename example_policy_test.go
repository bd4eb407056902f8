package relayer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// Every field of a policy is optional; new makes a pointer to a value.
func ExamplePolicy() {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	oneETH, err := relayer.ParseAmount("1e18")
	if err != nil {
		log.Fatal(err)
	}
	r, err := manager.Create(context.Background(), relayer.CreateRequest{
		Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
		Policies: &relayer.EVMPolicy{
			EIP1559Pricing:     new(true),
			GasPriceCap:        new(relayer.NewAmount(30_000_000_000)),
			MinBalance:         &oneETH,
			WhitelistReceivers: []string{"0x6b175474e89094c44da98b954eedeac495271d0f"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	switch policy := r.Policies.(type) {
	case *relayer.EVMPolicy:
		fmt.Println("stops below", policy.MinBalance, "wei; private transactions set:", policy.PrivateTransactions != nil)
	case *relayer.SolanaPolicy:
		fmt.Println("fees paid by", *policy.FeePaymentStrategy)
	case *relayer.StellarPolicy:
		fmt.Println("waits", policy.TimeoutSeconds)
	}
	// Output:
	// stops below 1000000000000000000 wei; private transactions set: false
}
