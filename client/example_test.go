package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func Example() {
	server := httptest.NewServer(exampleServer())
	defer server.Close()
	ctx := context.Background()

	registry, err := client.New(server.URL, client.WithToken("the-token-of-the-server"))
	if err != nil {
		log.Fatal(err)
	}
	created, err := registry.Create(ctx, relayer.CreateRequest{
		ID:          "sepolia-main",
		Name:        "Sepolia main",
		Network:     "sepolia",
		NetworkType: relayer.EVM,
		SignerID:    "signer-1",
	})
	if err != nil {
		log.Fatal(err)
	}

	// The change is made only if no other writer has changed the relayer since.
	patch := []byte(`{"paused":true,"policies":{"gas_price_cap":100000000000}}`)
	changed, err := registry.Patch(ctx, created.ID, patch, relayer.IfRevision(created.Revision))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(changed.Name, changed.Paused, changed.Policy)

	_, err = registry.Resume(ctx, created.ID, relayer.IfRevision(created.Revision))
	fmt.Println(errors.Is(err, relayer.ErrConflict))

	for r, err := range registry.All(ctx, relayer.Selector{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.ID)
	}
	// Output:
	// Sepolia main true {"gas_price_cap":100000000000}
	// true
	// sepolia-main
}

// A follower calls Watch first, then reads all relayers, and then ranges over the changes,
// so that it gets all changes. After an error that matches [relayer.ErrGap], it begins again.
// Package mirror does all that.
func ExampleClient_Watch() {
	server := httptest.NewServer(exampleServer())
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // releases the connection

	registry, err := client.New(server.URL, client.WithToken("the-token-of-the-server"))
	if err != nil {
		log.Fatal(err)
	}
	changes := registry.Watch(ctx, relayer.WatchQuery{})
	paused := make(map[string]bool)
	for r, err := range registry.All(ctx, relayer.Selector{}) {
		if err != nil {
			log.Fatal(err)
		}
		paused[r.ID] = r.Paused
	}

	req := relayer.CreateRequest{ID: "a", Name: "A", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
	if _, err := registry.Create(ctx, req); err != nil {
		log.Fatal(err)
	}
	if _, err := registry.Pause(ctx, "a"); err != nil {
		log.Fatal(err)
	}

	for change, err := range changes {
		if err != nil {
			log.Fatal(err)
		}
		if change.Kind == relayer.ChangeDeleted {
			delete(paused, change.Relayer.ID)
			continue
		}
		paused[change.Relayer.ID] = change.Relayer.Paused
		fmt.Println(change.Kind, change.Relayer.ID, change.Relayer.Paused)
		if paused["a"] {
			break
		}
	}
	// Output:
	// created a false
	// updated a true
}

func exampleServer() *httpapi.API {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {"the-token-of-the-server"}})
	if err != nil {
		log.Fatal(err)
	}
	api, err := httpapi.New(manager, authenticate)
	if err != nil {
		log.Fatal(err)
	}
	return api
}
