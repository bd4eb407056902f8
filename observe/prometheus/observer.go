package prometheus

import (
	"context"
	"errors"
	"fmt"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/buckets"
	"github.com/go-relayer/relayer/observe/outcome"
)

// NewObserver registers the metrics and returns an observer for
// [relayer.WithObserver]. Managers that share an observer are counted together.
// To count them separately, create one observer per Manager, each with its own
// label through client_golang's WrapRegistererWith.
//
// NewObserver returns an error if the registerer is nil or rejects the metrics,
// for example because they are already registered. It then registers nothing.
func NewObserver(registerer client.Registerer) (relayer.Observer, error) {
	if registerer == nil {
		return nil, errors.New("prometheus: registerer is nil")
	}
	m := newMetrics()
	if err := registerer.Register(m); err != nil {
		return nil, fmt.Errorf("prometheus: register the relayer metrics (allowed once per registerer): %w", err)
	}
	return m.observe, nil
}

// metrics is a single collector, so that registration is all or nothing.
type metrics struct {
	operations *client.CounterVec
	durations  *client.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		operations: client.NewCounterVec(client.CounterOpts{
			Name: "relayer_operations_total",
			Help: "Relayer registry operations by outcome.",
		}, []string{"operation", "outcome"}),
		durations: client.NewHistogramVec(client.HistogramOpts{
			Name:    "relayer_operation_duration_seconds",
			Help:    "Duration of relayer registry operations.",
			Buckets: buckets.Seconds(),
		}, []string{"operation"}),
	}
	m.startAtZero()
	return m
}

// startAtZero creates the series of all known kinds. The PromQL functions rate
// and increase would ignore the first event of a series that starts at one.
func (m *metrics) startAtZero() {
	for _, kind := range outcome.Kinds() {
		for _, result := range outcome.All() {
			m.operations.WithLabelValues(string(kind), string(result))
		}
		m.durations.WithLabelValues(string(kind))
	}
}

func (m *metrics) observe(ctx context.Context, operation relayer.Operation) {
	kind, result := string(operation.Kind), string(outcome.Of(ctx, operation.Err))
	m.operations.WithLabelValues(kind, result).Inc()
	m.durations.WithLabelValues(kind).Observe(operation.Took.Seconds())
}

// Describe implements client_golang's Collector.
func (m *metrics) Describe(descriptions chan<- *client.Desc) {
	m.operations.Describe(descriptions)
	m.durations.Describe(descriptions)
}

// Collect implements client_golang's Collector.
func (m *metrics) Collect(collected chan<- client.Metric) {
	m.operations.Collect(collected)
	m.durations.Collect(collected)
}
