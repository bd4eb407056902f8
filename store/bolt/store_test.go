package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "relayers.db")
		return func(t *testing.T) relayer.Store { return open(t, path) }
	})
}

// open opens a store that the test, or what it calls, closes.
func open(t testing.TB, path string, opts ...bolt.Option) *bolt.Store {
	t.Helper()
	store, err := bolt.Open(t.Context(), path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// opened opens a store in a directory of its own, checks it and closes it when
// the test ends.
func opened(t testing.TB) (*bolt.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, path
}
