// Package stores lists the stores that need no server, for the tests of every store.
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

// Kind is a kind of store.
type Kind struct {
	Name      string
	IsDurable bool

	// Open opens a store. One that is durable has its data in the directory.
	Open func(ctx context.Context, directory string) (relayer.Store, error)
}

// All are all kinds.
var All = []Kind{
	{"memory", false, func(context.Context, string) (relayer.Store, error) { return memory.New(), nil }},
	{"map", false, func(context.Context, string) (relayer.Store, error) { return new(mapstore.Store), nil }},
	{"bolt", true, func(ctx context.Context, directory string) (relayer.Store, error) {
		return bolt.Open(ctx, filepath.Join(directory, "relayers.db"))
	}},
}

// New opens a new store until the test ends.
func (k Kind) New(t *testing.T) relayer.Store {
	t.Helper()
	store, err := k.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if store, ok := store.(io.Closer); ok {
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return store
}
