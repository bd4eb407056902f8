package otel_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/observertest"
	"github.com/go-relayer/relayer/observe/outcome"
)

func TestObserver_EveryOperationAndOutcome(t *testing.T) {
	for _, call := range observertest.Calls() {
		for _, result := range observertest.Results() {
			t.Run(call.Name+" "+string(result.Outcome), func(t *testing.T) {
				got := newTelemetry(t)
				var operation relayer.Operation
				result.Run(t, call, func(ctx context.Context, observed relayer.Operation) {
					operation = observed
					got.observe(ctx, observed)
				})
				checkSpan(t, got, operation, result.Outcome)
				checkPoint(t, got, operation, result.Outcome)
				if secret := observertest.FindSecret(got.exported(t)); secret != "" {
					t.Errorf("%q is exported: %s", secret, got.exported(t))
				}
			})
		}
	}
}

func checkSpan(t *testing.T, got telemetry, operation relayer.Operation, result outcome.Outcome) {
	t.Helper()
	span := got.span(t)
	if want := "relayer." + string(operation.Kind); span.Name != want {
		t.Errorf("span name is %q, want %q", span.Name, want)
	}
	if !span.StartTime.Equal(operation.Began) || !span.EndTime.Equal(operation.Began.Add(operation.Took)) {
		t.Errorf("span lasts from %v to %v, want from %v for %v", span.StartTime, span.EndTime, operation.Began, operation.Took)
	}
	want := map[string]string{"relayer.operation": string(operation.Kind)}
	if operation.Kind != relayer.OperationList {
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

func checkPoint(t *testing.T, got telemetry, operation relayer.Operation, result outcome.Outcome) {
	t.Helper()
	if metric := got.metric(t); metric.Name != "relayer.operation.duration" || metric.Unit != "s" || metric.Description == "" {
		t.Errorf("metric is %q in %q: %q", metric.Name, metric.Unit, metric.Description)
	}
	points := got.points(t)
	if len(points) != 1 {
		t.Fatalf("%d points, want 1", len(points))
	}
	want := map[string]string{"relayer.operation": string(operation.Kind), "relayer.outcome": string(result)}
	if texts := textsOf(points[0].Attributes.ToSlice()); !maps.Equal(texts, want) {
		t.Errorf("attributes are %v, want %v", texts, want)
	}
	if points[0].Count != 1 || points[0].Sum != operation.Took.Seconds() {
		t.Errorf("recorded %d operations of %v s, want one of %v", points[0].Count, points[0].Sum, operation.Took)
	}
	bounds := points[0].Bounds
	if bounds[0] != 10e-6 || bounds[len(bounds)-1] != 10 || !slices.IsSorted(bounds) {
		t.Errorf("bounds are %v, want from 10 µs to 10 s", bounds)
	}
}

func TestObserver_SpanParent(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	ctx, parent := got.tracers.Tracer("host").Start(context.Background(), "request")
	manager.List(ctx, 1, 10)
	manager.Get(ctx, observertest.ID)
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
		if span.StartTime.Before(request.StartTime) || span.EndTime.After(request.EndTime) {
			t.Errorf("%s lasts from %v to %v, outside of the request", span.Name, span.StartTime, span.EndTime)
		}
		if span.SpanKind != oteltrace.SpanKindInternal {
			t.Errorf("%s is of kind %v, want internal", span.Name, span.SpanKind)
		}
	}
	if spans[1].StartTime.Before(spans[0].EndTime) {
		t.Error("the second operation starts before the end of the first")
	}
}

func TestObserver_UnsampledSpanIsMeasured(t *testing.T) {
	got := newTelemetry(t, trace.WithSampler(trace.NeverSample()))
	manager := newManager(t, relayer.WithObserver(got.observe))
	manager.Get(context.Background(), observertest.ID)
	if spans := got.spans.GetSpans(); len(spans) != 0 {
		t.Errorf("%d spans, want none", len(spans))
	}
	if points := got.points(t); len(points) != 1 || points[0].Count != 1 {
		t.Errorf("recorded %v, want one operation", points)
	}
}

func TestObserver_SamplerAttributes(t *testing.T) {
	sampler := &recordingSampler{Sampler: trace.AlwaysSample()}
	got := newTelemetry(t, trace.WithSampler(sampler))
	manager := newManager(t, relayer.WithObserver(got.observe))
	manager.Get(context.Background(), observertest.ID)
	want := map[string]string{"relayer.operation": "get", "relayer.id": observertest.ID, "error.type": "not_found"}
	if texts := textsOf(sampler.received.Attributes); !maps.Equal(texts, want) {
		t.Errorf("sampler received %v, want %v", texts, want)
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

func TestObserver_Exemplar(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	manager.Get(context.Background(), observertest.ID)
	exemplars := got.points(t)[0].Exemplars
	if len(exemplars) != 1 {
		t.Fatalf("%d exemplars, want 1", len(exemplars))
	}
	if id := got.span(t).SpanContext.SpanID(); !slices.Equal(exemplars[0].SpanID, id[:]) {
		t.Errorf("exemplar links to span %x, want %v", exemplars[0].SpanID, id)
	}
}

// An operation kind added by a later version is recorded too.
func TestObserver_UnknownKind(t *testing.T) {
	got := newTelemetry(t)
	operation := relayer.Operation{Kind: "rename", ID: observertest.ID, Began: time.Now(), Took: time.Second}
	got.observe(context.Background(), operation)
	checkSpan(t, got, operation, outcome.OK)
	checkPoint(t, got, operation, outcome.OK)
}

func TestObserver_ConcurrentOperations(t *testing.T) {
	const callers, each = 16, 50
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range each {
				manager.Get(context.Background(), observertest.ID)
				manager.List(context.Background(), 1, 10)
			}
		})
	}
	running.Wait()

	var recorded uint64
	for _, point := range got.points(t) {
		recorded += point.Count
	}
	if want := 2 * callers * each; recorded != uint64(want) || len(got.spans.GetSpans()) != want {
		t.Errorf("%d recorded and %d spans, want %d of each", recorded, len(got.spans.GetSpans()), want)
	}
}
