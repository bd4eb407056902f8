// Command minimal creates a relayer and lists all relayers.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func main() {
	ctx := context.Background()
	manager, err := relayer.New(memory.New()) // or the store that bolt.Open(ctx, "treasury.db") returns
	if err != nil {
		log.Fatal(err)
	}
	_, err = manager.Create(ctx, relayer.CreateRequest{
		Name: "Treasury", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "treasury-key",
	})
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range manager.All(ctx, relayer.Selector{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Name, "relays on", r.Network)
	}
}
