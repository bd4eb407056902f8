//go:build unix

package stores

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
)

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
				next += measure(b, writers, func(i int) { createRecord(b, store, next+i) })
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

func createRecord(b *testing.B, store relayer.Store, i int) {
	if _, err := store.Create(b.Context(), recordOf(i)); err != nil {
		b.Error(err)
	}
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
