package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

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
