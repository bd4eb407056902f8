// Package relayerotel reports the operations of a [relayer.Manager] to OpenTelemetry:
// one span and one measurement for each.
//
//	observer, err := relayerotel.NewObserver(nil, nil) // the global providers
//	// …
//	manager, err := relayer.New(store, relayer.WithObserver(observer))
//
// Its instrumentation scope is the import path of this package.
//
// # Spans
//
// A span is named relayer.create, relayer.get and so on. Its parent is the span in the context
// passed to the Manager, and spans that hooks and stores start with the context of their call are
// its children.
//
//	relayer.operation  the action of the operation
//	relayer.id         the ID, if it is valid
//	error.type         if the operation failed: its outcome, or _OTHER
//
// The status is Error for a fault (see [outcome.Outcome.IsFault]) and unset otherwise. An unknown
// ID or an invalid request is a normal result and does not set the status.
//
// # Metrics
//
// The histogram relayer.operation.duration, in seconds, also counts the
// operations. It has these attributes:
//
//	relayer.operation  the action of the operation
//	relayer.outcome    the outcome, a word of package outcome
//
// IDs are not attributes of the metric: each ID would create a new time series.
//
// # Privacy
//
// Error texts are never exported, neither as events nor as status descriptions. They may repeat
// client input, and errors of stores and hooks may contain addresses and credentials. An ID is
// exported only if it is valid, so a URL or a long text in its place is not exported. A secret
// that has the form of a valid ID, and is sent as one by mistake, is exported.
package relayerotel

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

const scope = "github.com/go-relayer/relayer/observe/otel"

// OpenTelemetry has no semantic conventions for a registry, except error.type.
const (
	idKey        = attribute.Key("relayer.id")
	operationKey = attribute.Key("relayer.operation")
	outcomeKey   = attribute.Key("relayer.outcome")
)

// NewObserver returns an observer for [relayer.WithObserver]. Several Managers
// may share it. The global provider replaces a nil one. A provider of package
// trace/noop disables spans, and one of metric/noop disables measurements.
// NewObserver returns an error if the meter provider cannot create the histogram.
func NewObserver(tracers trace.TracerProvider, meters metric.MeterProvider) (relayer.Observer, error) {
	tracers = cmp.Or(tracers, otel.GetTracerProvider())
	meters = cmp.Or(meters, otel.GetMeterProvider())
	meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	duration, err := meter.Float64Histogram("relayer.operation.duration",
		metric.WithDescription("Duration of relayer registry operations."),
		metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(buckets...),
	)
	if err != nil {
		return nil, fmt.Errorf("relayerotel: create histogram: %w", err)
	}
	o := observer{tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)), duration}
	return o.observe, nil
}

type observer struct {
	tracer   trace.Tracer
	duration metric.Float64Histogram
}

// buckets are the upper bounds in seconds: from an in-memory read to a write on a slow disk. The
// first default one above 0 is 5 s, which is above nearly all operations.
var buckets = []float64{
	1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}

// observe records the measurement inside the span, so that exemplars link to it.
func (o observer) observe(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
	began := time.Now()
	givenID := operation.ID
	action := operationKey.String(string(operation.Action))
	attributes := []attribute.KeyValue{action}
	if relayer.IsID(givenID) { // samplers only see attributes that are present at the start
		attributes = append(attributes, idKey.String(givenID))
	}
	ctx, span := o.tracer.Start(ctx, "relayer."+string(operation.Action),
		trace.WithTimestamp(began), trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		took, result := time.Since(began), outcome.Of(ctx, err)
		if operation.ID != givenID && relayer.IsID(operation.ID) {
			span.SetAttributes(idKey.String(operation.ID)) // of a create: generated, or from a body
		}
		setResult(span, result)
		o.duration.Record(ctx, took.Seconds(), metric.WithAttributes(action, outcomeKey.String(string(result))))
		span.End(trace.WithTimestamp(began.Add(took)))
	}
}

func setResult(span trace.Span, result outcome.Outcome) {
	switch result {
	case outcome.OK:
	case outcome.Error:
		span.SetAttributes(semconv.ErrorTypeOther)
	default:
		span.SetAttributes(semconv.ErrorTypeKey.String(string(result)))
	}
	if result.IsFault() {
		span.SetStatus(codes.Error, "")
	}
}
