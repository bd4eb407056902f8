// Package faulty has stores that break their contract. A test that cannot catch
// them proves nothing about a store that it finds correct.
package faulty

import (
	"context"

	"github.com/go-relayer/relayer"
)

// early acknowledges a create before the store has committed it.
type early struct {
	relayer.Store
	creates chan relayer.Record
}

// NewEarly returns a store that acknowledges a create before it carries it out.
// Its other methods are those of the store given.
func NewEarly(store relayer.Store) relayer.Store {
	e := &early{Store: store, creates: make(chan relayer.Record, 1<<20)}
	go func() {
		for rec := range e.creates {
			_, _ = store.Create(context.Background(), rec)
		}
	}()
	return e
}

func (e *early) Create(_ context.Context, rec relayer.Record) (relayer.Record, error) {
	e.creates <- rec
	return rec, nil
}
