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

	store, err := bolt.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if _, err := store.Create(ctx, relayer.Record{ID: "sepolia", Document: []byte(`{"id":"sepolia"}`)}); err != nil {
		fmt.Println(err)
	}
	if err := store.Close(); err != nil {
		fmt.Println(err)
	}

	store, err = bolt.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	rec, err := store.Get(ctx, "sepolia")
	fmt.Println(string(rec.Document), err)
	// Output: {"id":"sepolia"} <nil>
}

// A backup is a store of its own once it is synced and has its name.
func ExampleStore_WriteTo() {
	dir, err := os.MkdirTemp("", "relayers")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := bolt.Open(filepath.Join(dir, "relayers.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	name := filepath.Join(dir, "backup.db")
	draft, err := os.OpenFile(name+".part", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.WriteTo(draft)
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), name)
	}
	fmt.Println(err)
	// Output: <nil>
}
