package otel_test

import (
	"context"
	"errors"
	"testing"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/drive"
	"github.com/go-relayer/relayer/observe/otel"
)

func TestWrongOptions(t *testing.T) {
	for name, option := range map[string]otel.Option{
		"zero":       {},
		"nil tracer": otel.WithTracerProvider(nil),
		"nil meter":  otel.WithMeterProvider(nil),
	} {
		t.Run(name, func(t *testing.T) {
			if observe, err := otel.NewObserver(option); err == nil || observe != nil {
				t.Errorf("error is %v, want one and no observer", err)
			}
		})
	}
}

// A host may make its observer before it sets the global providers.
func TestGlobalProviders(t *testing.T) {
	tracers, meters := otelapi.GetTracerProvider(), otelapi.GetMeterProvider()
	observe, err := otel.NewObserver()
	if err != nil {
		t.Fatal(err)
	}
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	otelapi.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otelapi.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	t.Cleanup(func() {
		otelapi.SetTracerProvider(tracers)
		otelapi.SetMeterProvider(meters)
	})

	newManager(t, relayer.WithObserver(observe)).Get(context.Background(), drive.ID)
	got := telemetry{observe: observe, spans: spans, reader: reader}
	got.span(t)
	if points := got.points(t); len(points) != 1 {
		t.Errorf("%d series, want 1", len(points))
	}
}

func TestHistogramRefused(t *testing.T) {
	_, err := otel.NewObserver(otel.WithMeterProvider(refusing{}))
	if !errors.Is(err, errRefused) {
		t.Errorf("error is %v, want %v", err, errRefused)
	}
}

var errRefused = errors.New("no histograms here")

type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errRefused
}
