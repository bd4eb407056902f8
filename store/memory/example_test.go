package memory_test

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// mayRelay is a function of a host program that takes a part of a registry.
func mayRelay(ctx context.Context, registry relayer.Reader, id string) bool {
	r, err := registry.Get(ctx, id)
	return err == nil && !r.Paused && !r.SystemDisabled
}

// A Manager on a memory store is the registry for the tests of a host program.
func Example() {
	ctx := context.Background()
	registry, _ := relayer.New(memory.New())
	_, _ = registry.Create(ctx, relayer.CreateRequest{ID: "treasury", Name: "Treasury", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "key"})
	fmt.Println(mayRelay(ctx, registry, "treasury"))
	_, _ = registry.Pause(ctx, "treasury")
	fmt.Println(mayRelay(ctx, registry, "treasury"))
	// Output:
	// true
	// false
}
