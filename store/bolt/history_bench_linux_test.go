package bolt_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
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
			for _, store := range []*bolt.Store{with, without} {
				createRate(b, store, 1024, 0, retained+2*n)
			}
			next := retained + 2*n
			size := backupSize(b, with) - backupSize(b, without)
			creates, updates := new(comparedWrites), new(comparedWrites)
			for b.Loop() {
				for range samples {
					creates.sample(with, without, func(store *bolt.Store) float64 { return createRate(b, store, writers, next, n) })
					next += n
					updates.sample(with, without, func(store *bolt.Store) float64 { return updateRate(b, store, writers, n) })
				}
			}
			creates.report(b, "create", n)
			updates.report(b, "update", n)
			b.ReportMetric(float64(size)/retained, "B-of-file/change")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// comparedWrites are samples of writes with a history and without.
type comparedWrites struct {
	rates         []float64 // with, divided by without
	with, without usage
}

// usage is processor time, and the bytes that were passed to the kernel.
type usage struct {
	seconds float64
	written int64
}

func (c *comparedWrites) sample(with, without *bolt.Store, rate func(*bolt.Store) float64) {
	start := usageNow()
	withRate := rate(with)
	middle := usageNow()
	c.rates = append(c.rates, withRate/rate(without))
	end := usageNow()
	c.with.add(start, middle)
	c.without.add(middle, end)
}

func (u *usage) add(start, end usage) {
	u.seconds += end.seconds - start.seconds
	u.written += end.written - start.written
}

func usageNow() (u usage) {
	var times syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &times)
	u.seconds = time.Duration(times.Utime.Nano() + times.Stime.Nano()).Seconds()
	counts, _ := os.ReadFile("/proc/self/io")
	_, _ = fmt.Sscanf(string(counts), "rchar: %d\nwchar: %d", new(int64), &u.written)
	return u
}

func (c *comparedWrites) report(b *testing.B, write string, n int) {
	b.ReportMetric(median(c.rates), write+"s-of-without")
	b.ReportMetric(c.with.seconds/c.without.seconds, write+"-processor-time-of-without")
	b.ReportMetric(float64(c.with.written)/float64(len(c.rates)*n), "B-written/"+write)
}

func backupSize(b *testing.B, store *bolt.Store) int64 {
	b.Helper()
	path := b.TempDir() + "/backup.db"
	if err := store.Backup(b.Context(), path); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
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
