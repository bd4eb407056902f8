package bolt_test

import (
	"context"
	"errors"
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

// A backup is durable after it is synced and renamed.
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

	name := filepath.Join(dir, "backup.db")
	temp, err := os.OpenFile(name+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.Backup(context.Background(), temp)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	fmt.Println(err)
	// Output: <nil>
}
