package relayerotel

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option configures the observer that [NewObserver] returns. The zero Option is invalid.
type Option struct {
	apply func(*providers) error
}

type providers struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
}

// WithTracerProvider replaces the global tracer provider. The provider of package
// trace/noop disables spans.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return Option{func(p *providers) error {
		if provider == nil {
			return errors.New("relayerotel: tracer provider is nil")
		}
		p.tracers = provider
		return nil
	}}
}

// WithMeterProvider replaces the global meter provider. The provider of package
// metric/noop disables measurements.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return Option{func(p *providers) error {
		if provider == nil {
			return errors.New("relayerotel: meter provider is nil")
		}
		p.meters = provider
		return nil
	}}
}

func newProviders(options []Option) (providers, error) {
	chosen := providers{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, option := range options {
		if option.apply == nil {
			return providers{}, errors.New("relayerotel: the zero Option is invalid")
		}
		if err := option.apply(&chosen); err != nil {
			return providers{}, err
		}
	}
	return chosen, nil
}
