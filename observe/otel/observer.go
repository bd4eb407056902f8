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
	"github.com/go-relayer/relayer/observe/outcome"
)

const scope = "github.com/go-relayer/relayer/observe/otel"

// There are no semantic conventions for a registry, beyond error.type.
const (
	idKey        = attribute.Key("relayer.id")
	operationKey = attribute.Key("relayer.operation")
	outcomeKey   = attribute.Key("relayer.outcome")
)

// durationBounds reach from a read in memory to a write that waits for a disk in
// trouble; the default ones begin at 5 ms, above which nearly nothing would be.
var durationBounds = []float64{
	0.00001, 0.000025, 0.00005,
	0.0001, 0.00025, 0.0005,
	0.001, 0.0025, 0.005,
	0.01, 0.025, 0.05,
	0.1, 0.25, 0.5,
	1, 2.5, 5,
	10,
}

// NewObserver returns an observer for [relayer.WithObserver]. It may be given to
// several Managers. It returns an error where an option is wrong or the meter
// provider refuses the histogram.
func NewObserver(options ...Option) (relayer.Observer, error) {
	chosen, err := newProviders(options)
	if err != nil {
		return nil, err
	}
	meter := chosen.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	duration, err := meter.Float64Histogram("relayer.operation.duration",
		metric.WithDescription("How long operations of the relayer registry lasted."),
		metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(durationBounds...),
	)
	if err != nil {
		return nil, fmt.Errorf("otel: making the histogram: %w", err)
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

// observe measures inside the span, so that an exemplar leads to it.
func (o *observer) observe(ctx context.Context, operation relayer.Operation) {
	ended := outcome.Of(ctx, operation.Err)
	ctx, span := o.tracer.Start(ctx, "relayer."+string(operation.Kind),
		trace.WithTimestamp(operation.Began),
		trace.WithAttributes(spanAttributes(operation, ended)...),
	)
	if ended.IsFault() {
		span.SetStatus(codes.Error, "")
	}
	o.duration.Record(ctx, operation.Took.Seconds(), o.optionsOf(series{operation.Kind, ended})...)
	span.End(trace.WithTimestamp(operation.Began.Add(operation.Took)))
}

func (o *observer) optionsOf(s series) []metric.RecordOption {
	if options, ok := o.prepared[s]; ok {
		return options
	}
	return s.options()
}

// spanAttributes are given when the span is started, for samplers to see.
func spanAttributes(operation relayer.Operation, ended outcome.Outcome) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, 0, 3)
	attributes = append(attributes, operationKey.String(string(operation.Kind)))
	if isID(operation.ID) {
		attributes = append(attributes, idKey.String(operation.ID))
	}
	switch ended {
	case outcome.OK:
		return attributes
	case outcome.Error:
		return append(attributes, semconv.ErrorTypeOther)
	default:
		return append(attributes, semconv.ErrorTypeKey.String(string(ended)))
	}
}
