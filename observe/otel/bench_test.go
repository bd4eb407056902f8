package relayerotel_test

import (
	"context"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/go-relayer/relayer"
	relayerotel "github.com/go-relayer/relayer/observe/otel"
)

// BenchmarkObserver measures a read without an observer and with one on each
// kind of provider.
func BenchmarkObserver(b *testing.B) {
	noSpans := relayerotel.WithTracerProvider(tracenoop.NewTracerProvider())
	noMetrics := relayerotel.WithMeterProvider(metricnoop.NewMeterProvider())
	metrics := relayerotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	unsampled := relayerotel.WithTracerProvider(trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())))
	sampled := relayerotel.WithTracerProvider(trace.NewTracerProvider())

	b.Run("none", func(b *testing.B) { benchmarkGet(b) })
	for _, with := range []struct {
		name    string
		options []relayerotel.Option
	}{
		{"noop", []relayerotel.Option{noSpans, noMetrics}},
		{"metrics", []relayerotel.Option{noSpans, metrics}},
		{"unsampled", []relayerotel.Option{unsampled, noMetrics}},
		{"sampled", []relayerotel.Option{sampled, noMetrics}},
		{"both", []relayerotel.Option{sampled, metrics}},
	} {
		b.Run(with.name, func(b *testing.B) {
			observe, err := relayerotel.NewObserver(with.options...)
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
	if _, err := manager.Create(ctx, request("a")); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		manager.Documents().Get(ctx, "a")
	}
}
