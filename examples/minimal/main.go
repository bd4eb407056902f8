// Command minimal creates a relayer, reads it, and lists all relayers.
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
	manager, err := relayer.New(memory.New()) // or bolt.Open(ctx, "relayers.db")
	if err != nil {
		log.Fatal(err)
	}
	created, err := manager.Create(ctx, relayer.CreateRequest{
		Name: "Treasury", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "treasury-key",
	})
	if err != nil {
		log.Fatal(err)
	}
	treasury, err := manager.Get(ctx, created.ID)
	if err != nil {
		log.Fatal(err)
	}
	page, err := manager.List(ctx, relayer.ListQuery{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(treasury.Name, "is one of", page.Pagination.TotalItems)
}
