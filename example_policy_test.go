package relayer_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
	"github.com/go-relayer/relayer/store/memory"
)

// Every field of a policy is optional; new returns a pointer to a value.
func ExamplePolicy() {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	r, err := manager.Create(context.Background(), relayer.CreateRequest{
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
