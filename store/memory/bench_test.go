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

// BenchmarkReads measures reads of random records and pages of 100,000 relayers of usual
// size. With -short there are 1,000.
func BenchmarkReads(b *testing.B) {
	total := 100_000
	if testing.Short() {
		total = 1000
	}
	store := memory.New()
	document, private := make([]byte, 600), make([]byte, 200)
	ids := make([]string, total)
	for i := range ids {
		ids[i] = fmt.Sprintf("6b3c1f52-0d8e-4a4f-9a57-%012d", i)
		if _, err := store.Create(b.Context(), relayer.Record{ID: ids[i], Document: document, Private: private}); err != nil {
			b.Fatal(err)
		}
		ids[i] = strings.Clone(ids[i]) // callers do not have the memory of the store
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
}
