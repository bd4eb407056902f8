package relayerotel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/go-relayer/relayer"
	relayerotel "github.com/go-relayer/relayer/observe/otel"
	"github.com/go-relayer/relayer/observe/outcome"
)

// secret is in errors and IDs. It must not be exported.
const secret = "https://user:hunter2@rpc.example"

// failures has an error, or nil, for each outcome.
var failures = map[outcome.Outcome]error{
	outcome.OK:          nil,
	outcome.NotFound:    fmt.Errorf("%w: %s", relayer.ErrNotFound, secret),
	outcome.Exists:      relayer.ErrExists,
	outcome.Invalid:     &relayer.ValidationError{Fields: []relayer.FieldError{{Field: secret, Message: secret}}},
	outcome.Conflict:    relayer.ErrConflict,
	outcome.Unavailable: relayer.ErrUnavailable,
	outcome.Unknown:     relayer.ErrOutcomeUnknown,
	outcome.Error:       errors.New(secret),
	outcome.Canceled:    context.Canceled,
}

func TestObserver_EveryActionAndOutcome(t *testing.T) {
	for _, action := range outcome.Actions() {
		for result, err := range failures {
			t.Run(string(action)+" "+string(result), func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				if result == outcome.Canceled {
					cancel()
				}
				defer cancel()
				got, operation := newTelemetry(t), relayer.Operation{Action: action, ID: "sepolia-1"}
				got.run(ctx, operation, err)
				checkSpan(t, got, operation, result)
				checkPoint(t, got, operation, result)
				if strings.Contains(got.exported(t), "hunter2") {
					t.Errorf("a secret is exported: %s", got.exported(t))
				}
			})
		}
	}
}

// The ID of a create is known when it ends. A span that a hook of the host starts is a child of
// the operation.
func TestObserver_Create(t *testing.T) {
	got := newTelemetry(t)
	admit := func(ctx context.Context, _ relayer.Operation, _, _ *relayer.Relayer) error {
		_, span := got.tracers.Tracer("host").Start(ctx, "admission")
		span.End()
		return nil
	}
	created, err := got.manager(t, relayer.WithAdmission(admit)).Create(context.Background(), request(""))
	mustSucceed(t, err)
	spans := got.spans.GetSpans()
	if len(spans) != 2 || spans[0].Name != "admission" || spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() {
		t.Fatalf("the spans are %v", spans)
	}
	if id := textsOf(spans[1].Attributes)["relayer.id"]; id != created.ID {
		t.Errorf("the ID is %q, want %q", id, created.ID)
	}
}

func checkSpan(t *testing.T, got telemetry, operation relayer.Operation, result outcome.Outcome) {
	t.Helper()
	span := got.span(t)
	if want := "relayer." + string(operation.Action); span.Name != want {
		t.Errorf("span name is %q, want %q", span.Name, want)
	}
	want := map[string]string{"relayer.operation": string(operation.Action)}
	if operation.ID != "" {
		want["relayer.id"] = operation.ID
	}
	switch result {
	case outcome.OK:
	case outcome.Error:
		want["error.type"] = "_OTHER"
	default:
		want["error.type"] = string(result)
	}
	if texts := textsOf(span.Attributes); !maps.Equal(texts, want) {
		t.Errorf("attributes are %v, want %v", texts, want)
	}
	status := trace.Status{Code: codes.Unset}
	if result == outcome.Unavailable || result == outcome.Unknown || result == outcome.Error {
		status.Code = codes.Error
	}
	if span.Status != status {
		t.Errorf("status is %v, want %v", span.Status, status)
	}
	if len(span.Events) > 0 {
		t.Errorf("span has events %v, want none", span.Events)
	}
}

// checkPoint expects one measurement, of the duration of the span.
func checkPoint(t *testing.T, got telemetry, operation relayer.Operation, result outcome.Outcome) {
	t.Helper()
	if metric := got.metric(t); metric.Unit != "s" || metric.Description == "" {
		t.Errorf("metric is %q in %q: %q", metric.Name, metric.Unit, metric.Description)
	}
	points := got.points(t)
	if len(points) != 1 {
		t.Fatalf("%d points, want 1", len(points))
	}
	want := map[string]string{"relayer.operation": string(operation.Action), "relayer.outcome": string(result)}
	if texts := textsOf(points[0].Attributes.ToSlice()); !maps.Equal(texts, want) {
		t.Errorf("attributes are %v, want %v", texts, want)
	}
	span := got.span(t)
	if took := span.EndTime.Sub(span.StartTime); points[0].Count != 1 || points[0].Sum != took.Seconds() {
		t.Errorf("recorded %d operations of %v s, want one of %v", points[0].Count, points[0].Sum, took)
	}
	bounds := points[0].Bounds
	if bounds[0] != 10e-6 || bounds[len(bounds)-1] != 10 || !slices.IsSorted(bounds) {
		t.Errorf("bounds are %v, want from 10 µs to 10 s", bounds)
	}
}

func TestObserver_SpanParent(t *testing.T) {
	got := newTelemetry(t)
	manager := got.manager(t)
	ctx, parent := got.tracers.Tracer("host").Start(context.Background(), "request")
	manager.List(ctx, relayer.ListQuery{})
	manager.Get(ctx, "sepolia-1")
	parent.End()

	spans := got.spans.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	request := spans[2]
	for _, span := range spans[:2] {
		if span.Parent.SpanID() != request.SpanContext.SpanID() || span.SpanContext.TraceID() != request.SpanContext.TraceID() {
			t.Errorf("%s is not a child of the request", span.Name)
		}
		if span.SpanKind != oteltrace.SpanKindInternal {
			t.Errorf("%s is of kind %v, want internal", span.Name, span.SpanKind)
		}
	}
}

func TestObserver_UnsampledSpanIsMeasured(t *testing.T) {
	got := newTelemetry(t, trace.WithSampler(trace.NeverSample()))
	got.manager(t).Get(context.Background(), "sepolia-1")
	if spans := got.spans.GetSpans(); len(spans) != 0 {
		t.Errorf("%d spans, want none", len(spans))
	}
	if points := got.points(t); len(points) != 1 || points[0].Count != 1 {
		t.Errorf("recorded %v, want one operation", points)
	}
}

// A sampler gets the attributes, and the measurement of a sampled span links to it.
func TestObserver_SampledSpan(t *testing.T) {
	sampler := &recordingSampler{Sampler: trace.AlwaysSample()}
	got := newTelemetry(t, trace.WithSampler(sampler))
	got.manager(t).Get(context.Background(), "sepolia-1")
	want := map[string]string{"relayer.operation": "get", "relayer.id": "sepolia-1"}
	if texts := textsOf(sampler.received.Attributes); !maps.Equal(texts, want) {
		t.Errorf("sampler received %v, want %v", texts, want)
	}
	exemplars := got.points(t)[0].Exemplars
	if id := got.span(t).SpanContext.SpanID(); len(exemplars) != 1 || !slices.Equal(exemplars[0].SpanID, id[:]) {
		t.Errorf("exemplars are %v, want one that links to span %v", exemplars, id)
	}
}

type recordingSampler struct {
	trace.Sampler
	received trace.SamplingParameters
}

func (s *recordingSampler) ShouldSample(parameters trace.SamplingParameters) trace.SamplingResult {
	s.received = parameters
	return s.Sampler.ShouldSample(parameters)
}

// The observer exports the IDs that the Manager accepts, and no others.
func TestObserver_ExportedIDs(t *testing.T) {
	ids := []string{secret, "", "a", "A_z-09", "-", strings.Repeat("a", 64), strings.Repeat("a", 65), "é", "ａ", "a\n", "\xff"}
	for char := range 256 {
		ids = append(ids, string([]byte{byte(char)}))
	}
	for _, id := range ids {
		t.Run(fmt.Sprintf("%.20q", id), func(t *testing.T) {
			_, err := newTelemetry(t).manager(t).Create(context.Background(), request(id))
			// Create accepts an empty ID and generates one.
			want := err == nil && id != ""

			for _, isKnownAtEnd := range []bool{false, true} { // the ID of a create is
				got, operation := newTelemetry(t), relayer.Operation{Action: relayer.ActionGet}
				if !isKnownAtEnd {
					operation.ID = id
				}
				_, end := got.observe(context.Background(), &operation)
				operation.ID = id
				end(nil)
				exported, ok := textsOf(got.span(t).Attributes)["relayer.id"]
				if ok != want || ok && exported != id {
					t.Errorf("exported ID is %q, %v; want present: %v", exported, ok, want)
				}
			}
		})
	}
}

// A host application may create its observer before it sets the global
// providers.
func TestNewObserver_GlobalProvidersSetLater(t *testing.T) {
	// A separate process: OpenTelemetry forwards the default global providers to the first
	// replacement only.
	if os.Getenv(childVariable) == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
		child.Env = append(os.Environ(), childVariable+"=1")
		if output, err := child.CombinedOutput(); err != nil || !strings.Contains(string(output), "PASS: "+t.Name()) {
			t.Errorf("child process: %v\n%s", err, output)
		}
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
