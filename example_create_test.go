package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
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

// RPC URLs are masked wherever they show. The conversion to string is for the
// code that calls the endpoint.
func ExampleRPCURL() {
	endpoint := relayer.RPCURL("https://eth-mainnet.g.alchemy.com/v2/api-key")
	fmt.Println(endpoint)
	fmt.Println(len(string(endpoint)))
	// Output:
	// https://eth-mainnet.g.alchemy.com/***
	// 44
}
