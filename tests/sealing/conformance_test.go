//go:build unix

package sealing_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/store/storetest"
)

// opening is a store around a sealed one whose records have their private parts in clear. A
// private part in clear begins with {, which opening adds and removes: the suite stores any
// bytes.
type opening struct{ *sealed.Store }

const prefix = "{"

func (o opening) opened(ctx context.Context, rec relayer.Record, err error) (relayer.Record, error) {
	if err == nil && len(rec.Private) > 0 {
		if rec.Private[0] == prefix[0] {
			return relayer.Record{}, fmt.Errorf("%s is stored in clear", rec.ID)
		}
		rec, err = o.Open(ctx, rec)
		if err == nil {
			rec.Private = rec.Private[len(prefix):]
		}
	}
	return rec, err
}

func toSeal(rec relayer.Record) relayer.Record {
	if len(rec.Private) > 0 {
		rec.Private = append([]byte(prefix), rec.Private...)
	}
	return rec
}

func (o opening) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := o.Store.Create(ctx, toSeal(rec))
	return o.opened(ctx, rec, err)
}

func (o opening) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec, err := o.Store.Update(ctx, toSeal(rec))
	return o.opened(ctx, rec, err)
}

func (o opening) Get(ctx context.Context, id string) (relayer.Record, error) {
	rec, err := o.Store.Get(ctx, id)
	return o.opened(ctx, rec, err)
}

func (o opening) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	listing, err := o.Store.List(ctx, query)
	records := make([]relayer.Record, len(listing.Records))
	for i, rec := range listing.Records {
		opened, openErr := o.opened(ctx, rec, nil)
		if openErr != nil {
			return relayer.Listing{}, openErr
		}
		records[i] = opened
	}
	listing.Records = records
	return listing, err
}

func (o opening) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	changes := o.Store.Watch(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		for change, err := range changes {
			change.Record, err = o.opened(ctx, change.Record, err)
			if !yield(change, err) {
				return
			}
		}
	}
}

// closing is opening around a store that has a Close.
type closing struct {
	opening
	io.Closer
}

func openingOn(t *testing.T, db relayer.Store) opening {
	t.Helper()
	store := mustGet(sealed.New(db, ringWith(t, "k1", "value")))(t)
	return opening{store}
}

// A sealed store conforms to the contract of a store, read through Open.
func TestSealedStore_Conformance(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) relayer.Store { return openingOn(t, memory.New()) })
	})
	eachPlace(t, func(t *testing.T, place func(t *testing.T) func(t *testing.T) durable) {
		t.Parallel()
		storetest.RunDurable(t, func(t *testing.T) func(t *testing.T) relayer.Store {
			open := place(t)
			return func(t *testing.T) relayer.Store {
				db := open(t)
				return closing{openingOn(t, db), db}
			}
		})
	})
}
