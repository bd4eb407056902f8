package stores

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// kind is a kind of store that needs no server.
type kind struct {
	name string

	// open opens a store. A durable store has its data in the directory.
	open func(ctx context.Context, directory string) (relayer.Store, error)
}

// kinds are the stores that need no server.
var kinds = []kind{
	{"memory", func(context.Context, string) (relayer.Store, error) { return memory.New(), nil }},
	{"map", func(context.Context, string) (relayer.Store, error) { return new(mapstore.Store), nil }},
	{"bolt", func(ctx context.Context, directory string) (relayer.Store, error) {
		return bolt.Open(ctx, filepath.Join(directory, "relayers.db"))
	}},
}

// new opens a new store until the test ends.
func (k kind) new(t *testing.T) relayer.Store {
	t.Helper()
	store, err := k.open(t.Context(), t.TempDir())
	must(t, err)
	if store, ok := store.(io.Closer); ok {
		t.Cleanup(func() { must(t, store.Close()) })
	}
	return store
}
