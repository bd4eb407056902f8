//go:build unix

package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
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

// BenchmarkWrites measures writes per second of one writer and of many, to a store of 100,000
// relayers. With -short there are 1,000.
func BenchmarkWrites(b *testing.B) {
	total := 100_000
	if testing.Short() {
		total = 1000
	}
	eachStore(b, func(b *testing.B, open func() relayer.Store) {
		store := open()
		defer closeStore(b, store)
		fill(b, store, 0, total)
		next := total
		for _, writers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("create/writers=%d", writers), func(b *testing.B) {
				next += measure(b, writers, func(i int) {
					if _, err := store.Create(b.Context(), recordOf(next+i)); err != nil {
						b.Error(err)
					}
				})
			})
			b.Run(fmt.Sprintf("update/writers=%d", writers), func(b *testing.B) {
				measure(b, writers, func(i int) { updateRecord(b, store, i*7919%total) })
			})
		}
		b.Run("import", func(b *testing.B) {
			for b.Loop() {
				fill(b, store, next, next+500)
				next += 500
			}
		})
	})
}

// measure calls write with consecutive numbers by many writers, and returns how many.
func measure(b *testing.B, writers int, write func(i int)) int {
	var next atomic.Int64
	written := 0
	for b.Loop() {
		written += 40 * writers
		var running sync.WaitGroup
		for range writers {
			running.Go(func() {
				for i := int(next.Add(1)) - 1; i < written; i = int(next.Add(1)) - 1 {
					write(i)
				}
			})
		}
		running.Wait()
		next.Store(int64(written))
	}
	b.ReportMetric(float64(written)/b.Elapsed().Seconds(), "writes/s")
	return written
}

// updateRecord ignores a conflict with another update.
func updateRecord(b *testing.B, store relayer.Store, i int) {
	rec, err := store.Get(b.Context(), idOf(i))
	if err == nil {
		_, err = store.Update(b.Context(), rec)
	}
	if err != nil && !errors.Is(err, relayer.ErrConflict) {
		b.Error(err)
	}
}

// recordOf returns the record of a number, with the size and the terms of a usual relayer. Half of
// the records have paused=true, a third network=0, and one of 10,000 the label.
func recordOf(i int) relayer.Record {
	id := idOf(i)
	terms := []string{
		fmt.Sprint("network=", i%3), fmt.Sprint("network_type=", i%3), "notification_id=ops",
		fmt.Sprint("paused=", i/3%2 == 0), fmt.Sprint("signer_id=", i%5000), fmt.Sprint("system_disabled=", i%100 == 0),
	}
	if i%10_000 == 0 {
		terms = append([]string{"label.team=payments"}, terms...)
	}
	return relayer.Record{
		ID: id, Revision: uint64(1 + i), Terms: terms, Text: fmt.Sprintf("%s\x1frelayer %d of team %d", id, i, i%50),
		Note:     []byte(`{"time":1700000000000,"actor":"deployer","action":"create"}`),
		Document: make([]byte, 600), Private: make([]byte, 200),
	}
}

func idOf(i int) string { return fmt.Sprintf("6b3c1f52-0d8e-4a4f-9a57-%012d", i) }

// eachStore runs a benchmark with an empty store in memory, in a file and in PostgreSQL.
func eachStore(b *testing.B, run func(b *testing.B, open func() relayer.Store)) {
	for _, kind := range kinds {
		if kind.name == "map" {
			continue // an example
		}
		b.Run(kind.name, func(b *testing.B) {
			directory := b.TempDir()
			run(b, func() relayer.Store {
				store, err := kind.open(b.Context(), directory)
				must(b, err)
				return store
			})
		})
	}
	b.Run("postgres", func(b *testing.B) {
		server, err := pgserver.New() // with -short too
		if err != nil {
			b.Skip(err)
		}
		b.Cleanup(func() { must(b, server.Close()) })
		run(b, func() relayer.Store { return pgtest.Open(b, server.ConnString()) })
	})
}

func closeStore(b *testing.B, store relayer.Store) {
	if closer, ok := store.(io.Closer); ok {
		must(b, closer.Close())
	}
}

// fill imports the records of the numbers from first to below end.
func fill(b *testing.B, store relayer.Store, first, end int) {
	const page = 500
	for ; first < end; first += page {
		records := make([]relayer.Record, min(page, end-first))
		for i := range records {
			records[i] = recordOf(first + i)
		}
		must(b, store.(transfer.Importer).Import(b.Context(), records))
	}
}
