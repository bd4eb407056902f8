package relayerotel_test

import (
	"context"
	"encoding/json"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/go-relayer/relayer"
	relayerotel "github.com/go-relayer/relayer/observe/otel"
	"github.com/go-relayer/relayer/store/memory"
)

// telemetry is an observer with its exported spans and metrics.
type telemetry struct {
	observe relayer.Observer
	tracers *trace.TracerProvider
	spans   *tracetest.InMemoryExporter
	reader  *metric.ManualReader
}

func newTelemetry(t testing.TB, options ...trace.TracerProviderOption) telemetry {
	t.Helper()
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	tracers := trace.NewTracerProvider(append(options, trace.WithSyncer(spans))...)
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	observe, err := relayerotel.NewObserver(tracers, meters)
	mustSucceed(t, err)
	return telemetry{observe, tracers, spans, reader}
}

// manager returns a Manager with the observer.
func (x telemetry) manager(t testing.TB, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	manager, err := relayer.New(memory.New(), append(options, relayer.WithObserver(x.observe))...)
	mustSucceed(t, err)
	return manager
}

func (x telemetry) span(t testing.TB) tracetest.SpanStub {
	t.Helper()
	spans := x.spans.GetSpans()
	if len(spans) != 1 {
		t.Fatalf("%d spans, want 1", len(spans))
	}
	return spans[0]
}

func (x telemetry) measured(t testing.TB) metricdata.ResourceMetrics {
	t.Helper()
	var measured metricdata.ResourceMetrics
	mustSucceed(t, x.reader.Collect(context.Background(), &measured))
	return measured
}

func (x telemetry) metric(t testing.TB) metricdata.Metrics {
	t.Helper()
	for _, scope := range x.measured(t).ScopeMetrics {
		for _, metric := range scope.Metrics {
			if metric.Name == "relayer.operation.duration" {
				return metric
			}
		}
	}
	t.Fatal("no durations of operations")
	return metricdata.Metrics{}
}

func (x telemetry) points(t testing.TB) []metricdata.HistogramDataPoint[float64] {
	t.Helper()
	histogram, ok := x.metric(t).Data.(metricdata.Histogram[float64])
	if !ok {
		t.Fatalf("collected %T, want a histogram", x.metric(t).Data)
	}
	return histogram.DataPoints
}

// exported returns all exported spans and metrics as text.
func (x telemetry) exported(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal([]any{x.spans.GetSpans(), x.measured(t)})
	mustSucceed(t, err)
	return string(text)
}

func request(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
}

// run reports one operation to the observer.
func (x telemetry) run(ctx context.Context, operation relayer.Operation, err error) {
	_, end := x.observe(ctx, &operation)
	end(err)
}

func textsOf(attributes []attribute.KeyValue) map[string]string {
	texts := make(map[string]string)
	for _, each := range attributes {
		texts[string(each.Key)] = each.Value.String()
	}
	return texts
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
