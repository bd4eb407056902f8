package relayerotel_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	relayerotel "github.com/go-relayer/relayer/observe/otel"
)

// A host application may create its observer before it sets the global
// providers.
func TestNewObserver_GlobalProvidersSetLater(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		runInChild(t)
		return
	}
	observe, err := relayerotel.NewObserver(nil, nil)
	mustSucceed(t, err)
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	otelapi.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otelapi.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))

	got := telemetry{observe: observe, spans: spans, reader: reader}
	got.manager(t).Get(context.Background(), "sepolia-1")
	got.span(t)
	if points := got.points(t); len(points) != 1 {
		t.Errorf("%d series, want 1", len(points))
	}
}

const childVariable = "RELAYER_OTEL_TEST_CHILD"

// runInChild repeats the test in a separate process: OpenTelemetry forwards
// the default global providers to the first replacement only.
func runInChild(t *testing.T) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	child.Env = append(os.Environ(), childVariable+"=1")
	if output, err := child.CombinedOutput(); err != nil || !strings.Contains(string(output), "PASS: "+t.Name()) {
		t.Errorf("child process: %v\n%s", err, output)
	}
}

func TestNewObserver_HistogramError(t *testing.T) {
	_, err := relayerotel.NewObserver(nil, refusing{})
	if !errors.Is(err, errRefused) {
		t.Errorf("error is %v, want %v", err, errRefused)
	}
}

var errRefused = errors.New("no histograms")

type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errRefused
}
