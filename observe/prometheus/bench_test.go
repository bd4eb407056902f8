package relayerprom_test

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer"
)

// BenchmarkObserver measures a read without an observer and with one.
func BenchmarkObserver(b *testing.B) {
	b.Run("none", func(b *testing.B) { benchmarkGet(b) })
	b.Run("metrics", func(b *testing.B) {
		observe, _ := newObserver(b)
		benchmarkGet(b, relayer.WithObserver(observe))
	})
}

func benchmarkGet(b *testing.B, options ...relayer.Option) {
	ctx := context.Background()
	manager := newManager(b, options...)
	if _, err := manager.Create(ctx, relayer.CreateRequest{ID: "a", Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		manager.Documents().Get(ctx, "a")
	}
}
