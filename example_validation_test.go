package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// All problems of a request are reported at once.
func ExampleValidationError() {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	_, err = manager.Create(context.Background(), relayer.CreateRequest{
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
