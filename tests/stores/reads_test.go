//go:build unix

package stores

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// BenchmarkReads measures reads among a million relayers, of which a fifth were updated, so that
// they are not in the order of memory. It reports the memory of a relayer, and how long a file
// takes to open. With -short there are 1,000.
func BenchmarkReads(b *testing.B) {
	total := 1_000_000
	if testing.Short() {
		total = 1000
	}
	eachStore(b, func(b *testing.B, open func() relayer.Store) {
		before, store := heapInUse(), open()
		fill(b, store, 0, total)
		for range total / 5 {
			updateRecord(b, store, rand.IntN(total))
		}
		b.Run("memory", func(b *testing.B) {
			b.ReportMetric(float64(heapInUse()-before)/float64(total), "B/relayer")
		})
		id := func() string { return idOf(rand.IntN(total)) }
		reads(b, store, total, id)
		b.Run("get during searches and writes", func(b *testing.B) { getDuring(b, store, total, id) })
		closeStore(b, store)
		b.Run("open", func(b *testing.B) {
			for b.Loop() {
				store := open()
				b.StopTimer()
				closeStore(b, store)
				b.StartTimer()
			}
		})
	})
}

func reads(b *testing.B, store relayer.Store, total int, id func() string) {
	list := func(query relayer.StoreQuery) func() error {
		query.Limit = 10
		return func() error {
			_, err := store.List(context.Background(), query)
			return err
		}
	}
	paused, network, label := []string{"paused=true"}, []string{"network=0"}, []string{"label.team=payments"}
	eight := []string{"relayer 7 ", "relayer 77 ", "mainnet", "team 51", "nothing", "zzz", "sepolia", "payments"}
	for _, c := range []struct {
		name string
		read func() error
	}{
		{"get", func() error { _, err := store.Get(context.Background(), id()); return err }},
		{"history", func() error {
			_, err := store.History(context.Background(), relayer.HistoryQuery{ID: id(), Limit: 20})
			return err
		}},
		{"first page", list(relayer.StoreQuery{})},
		{"last page", list(relayer.StoreQuery{Offset: total - 10})},
		{"last page of half", list(relayer.StoreQuery{Terms: [][]string{paused}, Offset: total/2 - 10})},
		{"page of a rare term", list(relayer.StoreQuery{Terms: [][]string{paused, label}})},
		{"page of half and third", list(relayer.StoreQuery{Terms: [][]string{paused, network}})},
		{"search", list(relayer.StoreQuery{Contains: []string{"relayer 7 "}})},
		{"search of eight values in half", list(relayer.StoreQuery{Terms: [][]string{paused}, Contains: eight})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, c.read())
			}
		})
	}
}

// getDuring measures gets while another caller searches all texts, and another one writes.
func getDuring(b *testing.B, store relayer.Store, total int, id func() string) {
	ctx, cancel := context.WithCancel(b.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			_, _ = store.List(ctx, relayer.StoreQuery{Contains: []string{"relayer 7 "}, Limit: 10})
		}
	})
	others.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			updateRecord(b, store, rand.IntN(total))
		}
	})
	var times []time.Duration
	for b.Loop() {
		id := id()
		time.Sleep(time.Millisecond) // a caller that arrives at any time
		start := time.Now()
		_, err := store.Get(b.Context(), id)
		must(b, err)
		times = append(times, time.Since(start))
	}
	cancel()
	others.Wait()
	slices.Sort(times)
	b.ReportMetric(times[len(times)*99/100].Seconds()*1e3, "ms/p99")
}

func heapInUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
