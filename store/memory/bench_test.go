package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// withoutHint does not pass on the hint of the Manager.
type withoutHint struct{ relayer.Store }

func (s withoutHint) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	query.DocumentsOnly = false
	return s.Store.List(ctx, query)
}

// BenchmarkReads measures reads of random records and pages of 100,000 relayers of usual size,
// and what the hint saves a server that lists 100 of them. With -short there are 1,000.
func BenchmarkReads(b *testing.B) {
	total := 100_000
	if testing.Short() {
		total = 1000
	}
	store := memory.New()
	ids := make([]string, total)
	for i := range ids {
		rec := selectable(i)
		rec.Note = []byte(`{"time":1700000000000,"actor":"deployer","action":"create"}`)
		if _, err := store.Create(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
		ids[i] = strings.Clone(rec.ID) // callers do not have the memory of the store
	}
	ctx := context.Background()
	run := func(name string, read func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("get", func() error {
		_, err := store.Get(ctx, ids[rand.IntN(total)])
		return err
	})
	for _, limit := range []int{10, 100} {
		run(fmt.Sprint("list=", limit), func() error {
			_, err := store.List(ctx, page(rand.IntN(total-limit), limit))
			return err
		})
	}
	for name, store := range map[string]relayer.Store{"no hint": withoutHint{store}, "DocumentsOnly": store} {
		manager, err := relayer.New(store)
		if err != nil {
			b.Fatal(err)
		}
		run("documents=100, "+name, func() error {
			_, err := manager.Documents().List(ctx, relayer.ListQuery{Page: 1 + rand.IntN(total/100), PerPage: 100})
			return err
		})
	}
}
