package bolt_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// BenchmarkHistory_Writes compares creates and updates with a history to those without. The
// history is full, so that each write also deletes entries.
func BenchmarkHistory_Writes(b *testing.B) {
	const retained = 5000
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			n := max(200, 40*writers)
			with, _ := openBench(b, bolt.WithHistory(retained, time.Hour))
			without, _ := openBench(b, bolt.WithHistory(0, 0))
			next := 0
			for _, store := range []*bolt.Store{with, without} {
				createRate(b, store, 1024, 0, retained+2*n)
			}
			next = retained + 2*n
			var creates, updates []float64
			for b.Loop() {
				for range samples {
					creates = append(creates, createRate(b, with, writers, next, n)/createRate(b, without, writers, next, n))
					next += n
					updates = append(updates, updateRate(b, with, writers, n)/updateRate(b, without, writers, n))
				}
			}
			b.ReportMetric(median(creates), "creates-of-without")
			b.ReportMetric(median(updates), "updates-of-without")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func openBench(b *testing.B, opts ...bolt.Option) (*bolt.Store, string) {
	b.Helper()
	path := b.TempDir() + "/relayers.db"
	store := open(b, path, opts...)
	b.Cleanup(func() { _ = store.Close() })
	return store, path
}

// updateRate updates relayers that are spread over the file.
func updateRate(b *testing.B, store *bolt.Store, writers, n int) float64 {
	b.Helper()
	recs, _, err := list(b.Context(), store, page(0, large))
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	start := time.Now()
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if _, err := store.Update(context.Background(), recs[i*(len(recs)/n)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkHistory_Find finds the last 20 changes of one relayer among 100,000 changes.
func BenchmarkHistory_Find(b *testing.B) {
	store, _ := openBench(b)
	n := large / 10
	first, err := store.Create(b.Context(), benchRecord(0))
	if err != nil {
		b.Fatal(err)
	}
	for range 20 {
		createRate(b, store, 2048, n+int(first.Revision), n/20)
		if first, err = store.Update(b.Context(), first); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		found, err := store.History(b.Context(), relayer.HistoryQuery{ID: first.ID, Limit: 20})
		if err != nil || len(found) != 20 {
			b.Fatal(len(found), err)
		}
	}
}
