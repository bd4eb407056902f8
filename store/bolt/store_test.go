package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T) func(t *testing.T) relayer.Store {
		path := filepath.Join(t.TempDir(), "relayers.db")
		return func(t *testing.T) relayer.Store { return open(t, path) }
	})
}
