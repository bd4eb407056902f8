package transfer_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// Copy all relayers from one store to another of any kind. There must be no other
// writers. If a copy ends early, call it again.
func ExampleCopy() {
	dir, err := os.MkdirTemp("", "relayers")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file, err := bolt.Open(context.Background(), filepath.Join(dir, "relayers.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	fill(file, "sepolia-1", "mainnet-1", "holesky-1")

	ctx := context.Background()
	other := memory.New()
	if err := transfer.Copy(ctx, other, file); err != nil {
		log.Fatal(err)
	}

	manager, err := relayer.New(other)
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range manager.All(ctx, relayer.Selector{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.ID)
	}
	// Output:
	// sepolia-1
	// mainnet-1
	// holesky-1
}

// fill creates relayers in a store.
func fill(store relayer.Store, ids ...string) {
	manager, err := relayer.New(store)
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range ids {
		_, err := manager.Create(context.Background(), relayer.CreateRequest{
			ID: id, Name: id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
		})
		if err != nil {
			log.Fatal(err)
		}
	}
}
