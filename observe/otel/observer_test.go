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
	"github.com/go-relayer/relayer/observe/internal/drive"
	"github.com/go-relayer/relayer/observe/outcome"
)

func TestEveryOperationWithEveryOutcome(t *testing.T) {
	for _, call := range drive.Calls() {
		for _, ending := range drive.Endings() {
			t.Run(call.Name+" "+string(ending.Outcome), func(t *testing.T) {
				got := newTelemetry(t)
				var told relayer.Operation
				ending.Drive(t, call, func(ctx context.Context, operation relayer.Operation) {
					told = operation
					got.observe(ctx, operation)
				})
				checkSpan(t, got, told, ending.Outcome)
				checkPoint(t, got, told, ending.Outcome)
				if secret := drive.Leak(got.exported(t)); secret != "" {
					t.Errorf("%q is exported: %s", secret, got.exported(t))
				}
			})
		}
	}
}

func checkSpan(t *testing.T, got telemetry, told relayer.Operation, ended outcome.Outcome) {
	t.Helper()
	span := got.span(t)
	if want := "relayer." + string(told.Kind); span.Name != want {
		t.Errorf("span is named %q, want %q", span.Name, want)
	}
	if !span.StartTime.Equal(told.Began) || !span.EndTime.Equal(told.Began.Add(told.Took)) {
		t.Errorf("span is from %v to %v, want from %v for %v", span.StartTime, span.EndTime, told.Began, told.Took)
	}
	want := map[string]string{"relayer.operation": string(told.Kind)}
	if told.Kind != relayer.OperationList {
		want["relayer.id"] = told.ID
	}
	switch ended {
	case outcome.OK:
	case outcome.Error:
		want["error.type"] = "_OTHER"
	default:
		want["error.type"] = string(ended)
	}
	if texts := textsOf(span.Attributes); !maps.Equal(texts, want) {
		t.Errorf("attributes are %v, want %v", texts, want)
	}
	status := trace.Status{Code: codes.Unset}
	if ended == outcome.Unavailable || ended == outcome.Unknown || ended == outcome.Error {
		status.Code = codes.Error
	}
	if span.Status != status {
		t.Errorf("status is %v, want %v", span.Status, status)
	}
	if len(span.Events) > 0 {
		t.Errorf("span has events %v, want none", span.Events)
	}
}

func checkPoint(t *testing.T, got telemetry, told relayer.Operation, ended outcome.Outcome) {
	t.Helper()
	if metric := got.metric(t); metric.Name != "relayer.operation.duration" || metric.Unit != "s" || metric.Description == "" {
		t.Errorf("metric is %q in %q: %q", metric.Name, metric.Unit, metric.Description)
	}
	points := got.points(t)
	if len(points) != 1 {
		t.Fatalf("%d points, want 1", len(points))
	}
	want := map[string]string{"relayer.operation": string(told.Kind), "relayer.outcome": string(ended)}
	if texts := textsOf(points[0].Attributes.ToSlice()); !maps.Equal(texts, want) {
		t.Errorf("attributes are %v, want %v", texts, want)
	}
	if points[0].Count != 1 || points[0].Sum != told.Took.Seconds() {
		t.Errorf("measured %d operations of %v s, want one of %v", points[0].Count, points[0].Sum, told.Took)
	}
	bounds := points[0].Bounds
	if bounds[0] != 10e-6 || bounds[len(bounds)-1] != 10 || !slices.IsSorted(bounds) {
		t.Errorf("bounds are %v, want from 10 µs to 10 s", bounds)
	}
}

func TestSpanIsChildOfCaller(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	ctx, parent := got.tracers.Tracer("host").Start(context.Background(), "request")
	manager.List(ctx, 1, 10)
	manager.Get(ctx, drive.ID)
	parent.End()

	spans := got.spans.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3", len(spans))
	}
	request := spans[2]
	for _, span := range spans[:2] {
		if span.Parent.SpanID() != request.SpanContext.SpanID() || span.SpanContext.TraceID() != request.SpanContext.TraceID() {
			t.Errorf("%s is no child of the request", span.Name)
		}
		if span.StartTime.Before(request.StartTime) || span.EndTime.After(request.EndTime) {
			t.Errorf("%s is from %v to %v, outside of the request", span.Name, span.StartTime, span.EndTime)
		}
		if span.SpanKind != oteltrace.SpanKindInternal {
			t.Errorf("%s is of kind %v, want internal", span.Name, span.SpanKind)
		}
	}
	if spans[1].StartTime.Before(spans[0].EndTime) {
		t.Error("the second operation begins before the first has ended")
	}
}

func TestUnsampledIsMeasured(t *testing.T) {
	got := newTelemetry(t, trace.WithSampler(trace.NeverSample()))
	manager := newManager(t, relayer.WithObserver(got.observe))
	manager.Get(context.Background(), drive.ID)
	if spans := got.spans.GetSpans(); len(spans) != 0 {
		t.Errorf("%d spans, want none", len(spans))
	}
	if points := got.points(t); len(points) != 1 || points[0].Count != 1 {
		t.Errorf("measured %v, want one operation", points)
	}
}

func TestSamplerSeesAttributes(t *testing.T) {
	sampler := &recordingSampler{Sampler: trace.AlwaysSample()}
	got := newTelemetry(t, trace.WithSampler(sampler))
	manager := newManager(t, relayer.WithObserver(got.observe))
	manager.Get(context.Background(), drive.ID)
	want := map[string]string{"relayer.operation": "get", "relayer.id": drive.ID, "error.type": "not_found"}
	if texts := textsOf(sampler.saw.Attributes); !maps.Equal(texts, want) {
		t.Errorf("sampler saw %v, want %v", texts, want)
	}
}

type recordingSampler struct {
	trace.Sampler
	saw trace.SamplingParameters
}

func (s *recordingSampler) ShouldSample(parameters trace.SamplingParameters) trace.SamplingResult {
	s.saw = parameters
	return s.Sampler.ShouldSample(parameters)
}

func TestExemplarLeadsToSpan(t *testing.T) {
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	manager.Get(context.Background(), drive.ID)
	exemplars := got.points(t)[0].Exemplars
	if len(exemplars) != 1 {
		t.Fatalf("%d exemplars, want 1", len(exemplars))
	}
	if id := got.span(t).SpanContext.SpanID(); !slices.Equal(exemplars[0].SpanID, id[:]) {
		t.Errorf("exemplar leads to %x, want %v", exemplars[0].SpanID, id)
	}
}

// A kind of operation that was added since is reported all the same.
func TestNewKind(t *testing.T) {
	got := newTelemetry(t)
	told := relayer.Operation{Kind: "rename", ID: drive.ID, Began: time.Now(), Took: time.Second}
	got.observe(context.Background(), told)
	checkSpan(t, got, told, outcome.OK)
	checkPoint(t, got, told, outcome.OK)
}

func TestConcurrentOperations(t *testing.T) {
	const callers, each = 16, 50
	got := newTelemetry(t)
	manager := newManager(t, relayer.WithObserver(got.observe))
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range each {
				manager.Get(context.Background(), drive.ID)
				manager.List(context.Background(), 1, 10)
			}
		})
	}
	running.Wait()

	var measured uint64
	for _, point := range got.points(t) {
		measured += point.Count
	}
	if want := 2 * callers * each; measured != uint64(want) || len(got.spans.GetSpans()) != want {
		t.Errorf("%d measured and %d spans, want %d of each", measured, len(got.spans.GetSpans()), want)
	}
}
