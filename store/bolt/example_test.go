package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

func Example() {
	dir, err := os.MkdirTemp("", "relayers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "relayers.db")

	ctx := context.Background()
	store, err := bolt.Open(ctx, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := store.Create(ctx, relayer.Record{ID: "sepolia", Document: []byte(`{"id":"sepolia"}`)}); err != nil {
		fmt.Println(err)
	}
	if err := store.Close(); err != nil {
		fmt.Println(err)
	}

	store, err = bolt.Open(ctx, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	rec, err := store.Get(ctx, "sepolia")
	fmt.Println(string(rec.Document), err)
	// Output: {"id":"sepolia"} <nil>
}

func ExampleStore_Backup() {
	dir, err := os.MkdirTemp("", "relayers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := bolt.Open(context.Background(), filepath.Join(dir, "relayers.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	fmt.Println(store.Backup(context.Background(), filepath.Join(dir, "backup.db")))
	// Output: <nil>
}
