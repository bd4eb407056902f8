package mapstore_test

import (
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) relayer.Store { return new(mapstore.Store) })
}
