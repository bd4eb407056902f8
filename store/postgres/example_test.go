//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

func Example() {
	ctx := context.Background()
	connString := server.ConnString() // postgres://registry:…@db.internal/registry

	store, err := postgres.Open(ctx, connString, postgres.WithSchema("example"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	manager, err := relayer.New(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := manager.Create(ctx, relayer.CreateRequest{
		ID: "sepolia", Name: "Sepolia", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.ID)
	// Output: sepolia
}

// A service that has a pool passes it to the store, and closes it after the store.
func ExampleNew() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, server.ConnString())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	store, err := postgres.New(ctx, pool, postgres.WithSchema("example_pool"), postgres.WithTimeout(2*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	page, err := store.List(ctx, relayer.StoreQuery{Limit: 10})
	fmt.Println(page.Total, err)
	// Output: 0 <nil>
}

// Watchers of one instance receive the changes of another.
func ExampleStore_Watch() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var managers [2]*relayer.Manager
	for i := range managers {
		store, err := postgres.Open(ctx, server.ConnString(), postgres.WithSchema("example_watch"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer store.Close()
		if managers[i], err = relayer.New(store); err != nil {
			fmt.Println(err)
			return
		}
	}

	changes := managers[1].Watch(ctx, relayer.WatchQuery{})
	_, err := managers[0].Create(ctx, relayer.CreateRequest{
		ID: "mainnet", Name: "Mainnet", Network: "mainnet", NetworkType: relayer.EVM, SignerID: "vault",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for change, err := range changes {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(change.Kind, change.Relayer.ID)
		break
	}
	// Output: created mainnet
}
