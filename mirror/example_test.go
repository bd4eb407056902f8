package mirror_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/mirror"
	"github.com/go-relayer/relayer/store/memory"
)

// mayRelay reports whether a relayer may relay a transaction now. It does not wait for the
// registry.
func mayRelay(ctx context.Context, view *mirror.Mirror, id string) bool {
	caughtUp := view.CaughtUp() // before Get, because the view may be replaced in between
	r, err := view.Get(ctx, id)
	return err == nil && !r.Paused && !r.SystemDisabled && time.Since(caughtUp) < time.Minute
}

// The same lines follow a Manager in this process, and a server.
func Example() {
	manager, server := exampleRegistry()
	defer server.Close()
	ctx := context.Background()
	remote, err := client.New(server.URL, client.WithToken("the-token-of-the-server"), client.WithFullRPCURLs())
	if err != nil {
		log.Fatal(err)
	}
	for _, source := range []relayer.Registry{manager, remote} {
		view, err := mirror.Open(ctx, source, relayer.Selector{}.Where("network", "sepolia"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(mayRelay(ctx, view, "treasury"), mayRelay(ctx, view, "unknown"))
		view.Close()
	}
	// Output:
	// true false
	// true false
}

// A program reacts to the transitions of relayers.
func ExampleMirror_Changes() {
	manager, server := exampleRegistry()
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	view, err := mirror.Open(ctx, manager, relayer.Selector{})
	if err != nil {
		log.Fatal(err)
	}
	defer view.Close()
	for change := range view.Changes(ctx) {
		switch change.Kind {
		case relayer.ChangeCreated:
			fmt.Println(change.After.ID, "is there")
			if _, err := manager.Pause(ctx, change.After.ID); err != nil {
				log.Fatal(err)
			}
		case relayer.ChangeUpdated:
			fmt.Println(change.After.ID, "is paused:", change.Before.Paused, "before,", change.After.Paused, "now")
			if err := manager.Delete(ctx, change.After.ID); err != nil {
				log.Fatal(err)
			}
		case relayer.ChangeDeleted:
			fmt.Println(change.Before.ID, "is deleted")
			cancel()
		}
	}
	// Output:
	// treasury is there
	// treasury is paused: false before, true now
	// treasury is deleted
}

// exampleRegistry returns a registry with a relayer, and its server.
func exampleRegistry() (*relayer.Manager, *httptest.Server) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		log.Fatal(err)
	}
	_, err = manager.Create(context.Background(), relayer.CreateRequest{
		ID: "treasury", Name: "Treasury", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "treasury-key",
	})
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := httpapi.Tokens(map[string][]string{"alice": {"the-token-of-the-server"}})
	if err != nil {
		log.Fatal(err)
	}
	api, err := httpapi.New(manager, tokens, httpapi.WithEngineOperations())
	if err != nil {
		log.Fatal(err)
	}
	return manager, httptest.NewServer(api)
}
