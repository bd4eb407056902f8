package bolt_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/bolt"
)

// BenchmarkHistory_Writes compares creates and updates with a history to those without, of a
// Manager and of the store alone. The history of each relayer is full, so that each update also
// deletes the change before.
func BenchmarkHistory_Writes(b *testing.B) {
	for _, level := range []struct {
		name   string
		writes func(*testing.B, *bolt.Store) benchWrites
	}{{"manager", managerWrites}, {"store", storeWrites}} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", level.name, writers), func(b *testing.B) { compareHistory(b, writers, level.writes) })
		}
	}
}

func compareHistory(b *testing.B, writers int, writesOf func(*testing.B, *bolt.Store) benchWrites) {
	n := max(200, 40*writers)
	next := 5000 + 2*n
	with, without := openBench(b, bolt.WithHistory(1, time.Hour)), openBench(b, bolt.WithHistory(0, 0))
	withWrites, withoutWrites := writesOf(b, with), writesOf(b, without)
	for _, writes := range []benchWrites{withWrites, withoutWrites} {
		writeRate(b, 1024, next, writes.create)
	}
	perChange := float64(backupSize(b, with)-backupSize(b, without)) / float64(next)
	updated := next / n // every so many relayers are updated, so that they are spread over the file
	creates, updates := new(comparedWrites), new(comparedWrites)
	for _, writes := range []benchWrites{withWrites, withoutWrites} {
		writeRate(b, writers, n, func(i int) error { return writes.update(i * updated) })
	}
	for b.Loop() {
		for range samples {
			creates.sample(withWrites, withoutWrites, func(w benchWrites) float64 {
				return writeRate(b, writers, n, func(i int) error { return w.create(next + i) })
			})
			next += n
			updates.sample(withWrites, withoutWrites, func(w benchWrites) float64 {
				return writeRate(b, writers, n, func(i int) error { return w.update(i * updated) })
			})
		}
	}
	creates.report(b, "create", n)
	updates.report(b, "update", n)
	b.ReportMetric(perChange, "B-of-file/change")
	b.ReportMetric(0, "ns/op")
}

// benchWrites are writes of numbered relayers, which are spread over the file.
type benchWrites struct{ create, update func(i int) error }

func storeWrites(b *testing.B, store *bolt.Store) benchWrites {
	return benchWrites{
		create: func(i int) error {
			_, err := store.Create(b.Context(), benchRecord(i))
			return err
		},
		update: func(i int) error {
			rec, err := store.Get(b.Context(), benchRecord(i).ID)
			if err == nil {
				_, err = store.Update(b.Context(), rec)
			}
			return err
		},
	}
}

func managerWrites(b *testing.B, store *bolt.Store) benchWrites {
	manager, err := relayer.New(store)
	if err != nil {
		b.Fatal(err)
	}
	var updated atomic.Int64
	return benchWrites{
		create: func(i int) error {
			_, err := manager.Create(b.Context(), relayer.CreateRequest{
				ID: benchRecord(i).ID, Name: fmt.Sprintf("relayer %d", i), Network: "sepolia", NetworkType: relayer.EVM, SignerID: "local-signer",
				Policy: &relayer.EVMPolicy{
					GasPriceCap:        new(relayer.Gwei(100)),
					WhitelistReceivers: []string{"0x1234567890123456789012345678901234567890", "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd"},
				},
				CustomRPCURLs: []relayer.RPCConfig{{URL: "https://sepolia.example.com/v3/0123456789abcdef0123456789abcdef"}},
			})
			return err
		},
		update: func(i int) error {
			_, err := manager.Patch(b.Context(), benchRecord(i).ID, patchtest.JSON(map[string]any{"name": fmt.Sprintf("relayer %d", updated.Add(1))}))
			return err
		},
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

func (c *comparedWrites) sample(with, without benchWrites, rate func(benchWrites) float64) {
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

func openBench(b *testing.B, opts ...bolt.Option) *bolt.Store {
	b.Helper()
	store := open(b, b.TempDir()+"/relayers.db", opts...)
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// BenchmarkHistory_Find finds the last 20 changes of one relayer among 100,000 changes.
func BenchmarkHistory_Find(b *testing.B) {
	store := openBench(b)
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
