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
	known      map[relayer.OperationKind]series
}

// series are the metrics of one kind of operation. They are looked up by their labels
// once, because a lookup costs more than an observation.
type series struct {
	outcomes map[outcome.Outcome]client.Counter
	duration client.Observer
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
	m.known = make(map[relayer.OperationKind]series)
	// The series of all known kinds start at zero: the PromQL functions rate and increase
	// would ignore the first event of a series that starts at one.
	for _, kind := range outcome.Kinds() {
		m.known[kind] = m.series(kind)
	}
	return m
}

func (m *metrics) series(kind relayer.OperationKind) series {
	s := series{outcomes: make(map[outcome.Outcome]client.Counter), duration: m.durations.WithLabelValues(string(kind))}
	for _, result := range outcome.All() {
		s.outcomes[result] = m.operations.WithLabelValues(string(kind), string(result))
	}
	return s
}

func (m *metrics) observe(ctx context.Context, operation relayer.Operation) {
	s, ok := m.known[operation.Kind]
	if !ok {
		s = m.series(operation.Kind)
	}
	s.outcomes[outcome.Of(ctx, operation.Err)].Inc()
	s.duration.Observe(operation.Took.Seconds())
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
