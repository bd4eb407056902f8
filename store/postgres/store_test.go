package postgres_test

import (
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.RunDurable(t, func(t *testing.T) storetest.Opener {
		schema := newSchema()
		return func(t *testing.T) relayer.Store {
			store, err := postgres.Open(t.Context(), server.ConnString(), schema)
			if err != nil {
				t.Fatal(err)
			}
			return checked{store, t}
		}
	})
}

// checked is a store that is checked before it is closed.
type checked struct {
	*postgres.Store
	t *testing.T
}

func (c checked) Close() error {
	return c.Store.Close()
}
