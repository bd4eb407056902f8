package prometheus_test

import (
	"context"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/observertest"
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
	if _, err := manager.Create(ctx, observertest.Request(observertest.ID)); err != nil {
		b.Fatal(err)
	}
	var document []byte
	b.ReportAllocs()
	for b.Loop() {
		document, _, _ = manager.AppendDocument(ctx, document[:0], observertest.ID)
	}
}
