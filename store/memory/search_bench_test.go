package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

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
