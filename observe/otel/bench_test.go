package otel_test

import (
	"context"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/observertest"
	"github.com/go-relayer/relayer/observe/otel"
)

// BenchmarkObserver measures a read without an observer and with one on each
// kind of provider.
func BenchmarkObserver(b *testing.B) {
	noSpans := otel.WithTracerProvider(tracenoop.NewTracerProvider())
	noMetrics := otel.WithMeterProvider(metricnoop.NewMeterProvider())
	metrics := otel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	unsampled := otel.WithTracerProvider(trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())))
	sampled := otel.WithTracerProvider(trace.NewTracerProvider())

	b.Run("none", func(b *testing.B) { benchmarkGet(b) })
	for _, with := range []struct {
		name    string
		options []otel.Option
	}{
		{"noop", []otel.Option{noSpans, noMetrics}},
		{"metrics", []otel.Option{noSpans, metrics}},
		{"unsampled", []otel.Option{unsampled, noMetrics}},
		{"sampled", []otel.Option{sampled, noMetrics}},
		{"both", []otel.Option{sampled, metrics}},
	} {
		b.Run(with.name, func(b *testing.B) {
			observe, err := otel.NewObserver(with.options...)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkGet(b, relayer.WithObserver(observe))
		})
	}
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
