//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.RunDurable(t, func(t *testing.T) func(t *testing.T) relayer.Store {
		t.Parallel()
		schema := newSchema()
		return func(t *testing.T) relayer.Store {
			store, err := postgres.Open(t.Context(), server.ConnString(), longTimeouts, schema)
			must(t, err)
			return checked{store, t}
		}
	})
}

// checked is a Store that runs Check before it is closed.
type checked struct {
	*postgres.Store
	t *testing.T
}

// Close may be called again, when there is nothing to check.
func (c checked) Close() error {
	if err := c.Check(context.Background()); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
		c.t.Error(err)
	}
	return c.Store.Close()
}
