package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// BenchmarkGet_DuringSearch measures gets among a million relayers while others search all texts
// and write. With -short there are 10,000.
func BenchmarkGet_DuringSearch(b *testing.B) {
	total := 1_000_000
	if testing.Short() {
		total = 10_000
	}
	store := memory.New()
	for i := range total {
		rec := selectable(i)
		rec.Text = fmt.Sprintf("%s\x1frelayer %d of team %d", rec.ID, i, i%50)
		if _, err := store.Create(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	var others sync.WaitGroup
	var searches, writes int
	others.Go(func() {
		for ; ctx.Err() == nil; searches++ {
			_, _ = store.List(ctx, relayer.StoreQuery{Contains: []string{"relayer 7 "}, Limit: 10})
		}
	})
	others.Go(func() {
		for ; ctx.Err() == nil; writes++ {
			if rec, err := store.Get(ctx, selectable(rand.IntN(total)).ID); err == nil {
				_, _ = store.Update(ctx, rec)
			}
			time.Sleep(time.Millisecond)
		}
	})
	var times []time.Duration
	for b.Loop() {
		id := selectable(rand.IntN(total)).ID
		time.Sleep(time.Millisecond) // a caller that arrives at any time
		start := time.Now()
		if _, err := store.Get(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	cancel()
	others.Wait()
	slices.Sort(times)
	b.ReportMetric(times[len(times)*99/100].Seconds()*1e3, "ms/p99")
	b.ReportMetric(times[len(times)-1].Seconds()*1e3, "ms/most")
	b.ReportMetric(float64(searches)/b.Elapsed().Seconds(), "searches/s")
	b.ReportMetric(float64(writes)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSearch searches among 200,000 relayers with texts of usual length, a fifth of
// which were updated. Eight values are compared with one. With -short there are 2,000.
func BenchmarkSearch(b *testing.B) {
	total := 200_000
	if testing.Short() {
		total = 2000
	}
	store := memory.New()
	for i := range total {
		rec := selectable(i)
		rec.Text = fmt.Sprintf("%s\x1frelayer %d of team %d", rec.ID, i, i%50)
		rec.Note = fmt.Appendf(nil, `{"time":%d,"actor":"deployer","action":"create"}`, time.Now().UnixMilli())
		if _, err := store.Create(b.Context(), rec); err != nil {
			b.Fatal(err)
		}
	}
	for range total / 5 {
		rec, err := store.Get(b.Context(), selectable(rand.IntN(total)).ID)
		if err == nil {
			_, err = store.Update(b.Context(), rec)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	eight := []string{"relayer 7 ", "relayer 77 ", "mainnet", "team 51", "nothing", "zzz", "sepolia", "payments"}
	for _, c := range []struct {
		name  string
		query relayer.StoreQuery
	}{
		{"one value", relayer.StoreQuery{Contains: []string{"relayer 7 "}, Limit: 10}},
		{"one letter", relayer.StoreQuery{Contains: []string{"x"}, Limit: 10}},
		{"nothing", relayer.StoreQuery{Contains: []string{"nothing"}, Limit: 10}},
		{"eight values", relayer.StoreQuery{Contains: eight, Limit: 10}},
		{"eight values of half", relayer.StoreQuery{Terms: [][]string{{"paused=true"}}, Contains: eight, Limit: 10}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []float64
			for b.Loop() {
				start := time.Now()
				if _, err := store.List(context.Background(), c.query); err != nil {
					b.Fatal(err)
				}
				times = append(times, float64(time.Since(start).Nanoseconds()))
			}
			b.ReportMetric(median(times)/1e6, "ms/median")
			b.ReportMetric(slices.Min(times)/1e6, "ms/least")
			b.ReportMetric(0, "ns/op")
		})
	}
}
