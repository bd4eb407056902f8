package relayer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// threeRelayers returns a registry with three relayers.
func threeRelayers() *relayer.Manager {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	for _, network := range []string{"mainnet", "sepolia", "holesky"} {
		_, err := manager.Create(context.Background(), relayer.CreateRequest{
			ID: network + "-1", Name: network, Network: network, NetworkType: relayer.EVM, SignerID: "local-signer",
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
	//   mainnet-1
	//   sepolia-1
	// page 2 of 3 relayers:
	//   holesky-1
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
	// mainnet-1
	// sepolia-1
	// holesky-1
}
