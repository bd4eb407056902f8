package otel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/buckets"
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
// may share it. NewObserver returns an error if an option is invalid or the
// meter provider cannot create the histogram.
func NewObserver(options ...Option) (relayer.Observer, error) {
	chosen, err := newProviders(options)
	if err != nil {
		return nil, err
	}
	meter := chosen.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	duration, err := meter.Float64Histogram("relayer.operation.duration",
		metric.WithDescription("Duration of relayer registry operations."),
		metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(buckets.Seconds()...),
	)
	if err != nil {
		return nil, fmt.Errorf("otel: create histogram: %w", err)
	}
	o := &observer{
		tracer:   chosen.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		duration: duration,
		prepared: seriesOptions(),
	}
	return o.observe, nil
}

type observer struct {
	tracer   trace.Tracer
	duration metric.Float64Histogram
	prepared map[series][]metric.RecordOption
}

// observe records the measurement inside the span, so that exemplars link to it.
func (o *observer) observe(ctx context.Context, operation relayer.Operation) {
	result := outcome.Of(ctx, operation.Err)
	ctx, span := o.tracer.Start(ctx, "relayer."+string(operation.Kind),
		trace.WithTimestamp(operation.Began),
		trace.WithAttributes(spanAttributes(operation, result)...),
	)
	if result.IsFault() {
		span.SetStatus(codes.Error, "")
	}
	o.duration.Record(ctx, operation.Took.Seconds(), o.optionsOf(series{operation.Kind, result})...)
	span.End(trace.WithTimestamp(operation.Began.Add(operation.Took)))
}

func (o *observer) optionsOf(s series) []metric.RecordOption {
	if options, ok := o.prepared[s]; ok {
		return options
	}
	return s.options()
}

// spanAttributes returns the attributes to start the span with. Samplers only see
// attributes that are present at the start.
func spanAttributes(operation relayer.Operation, result outcome.Outcome) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 3)
	attributes = append(attributes, operationKey.String(string(operation.Kind)))
	if relayer.IsID(operation.ID) {
		attributes = append(attributes, idKey.String(operation.ID))
	}
	switch result {
	case outcome.OK:
		return attributes
	case outcome.Error:
		return append(attributes, semconv.ErrorTypeOther)
	default:
		return append(attributes, semconv.ErrorTypeKey.String(string(result)))
	}
}
