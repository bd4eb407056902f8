package prometheus

import (
	"context"
	"errors"
	"fmt"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// durationBounds reach from a read in memory to a write that waits for a disk in
// trouble; the client's own begin at 5 ms, above which nearly nothing would be.
var durationBounds = []float64{
	0.00001, 0.000025, 0.00005,
	0.0001, 0.00025, 0.0005,
	0.001, 0.0025, 0.005,
	0.01, 0.025, 0.05,
	0.1, 0.25, 0.5,
	1, 2.5, 5,
	10,
}

// NewObserver registers the metrics and returns an observer for
// [relayer.WithObserver]. It may be given to several Managers, which are then
// counted together. To count them apart, make one for each on a registerer of
// client_golang's WrapRegistererWith, with a label that says which.
//
// It returns an error where the registerer is nil or refuses the metrics, above
// all because it has them already. Nothing has been registered then.
func NewObserver(registerer client.Registerer) (relayer.Observer, error) {
	if registerer == nil {
		return nil, errors.New("prometheus: registerer is nil")
	}
	m := newMetrics()
	if err := registerer.Register(m); err != nil {
		return nil, fmt.Errorf("prometheus: registering the relayer metrics, which a registerer takes once: %w", err)
	}
	return m.observe, nil
}

// metrics is one collector, so that it is registered as a whole or not at all.
type metrics struct {
	operations *client.CounterVec
	durations  *client.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		operations: client.NewCounterVec(client.CounterOpts{
			Name: "relayer_operations_total",
			Help: "Operations of the relayer registry, by how they ended.",
		}, []string{"operation", "outcome"}),
		durations: client.NewHistogramVec(client.HistogramOpts{
			Name:    "relayer_operation_duration_seconds",
			Help:    "How long operations of the relayer registry lasted.",
			Buckets: durationBounds,
		}, []string{"operation"}),
	}
	m.startAtZero()
	return m
}

// startAtZero makes the series that can be foreseen: to a rate or an increase a
// series that begins at one has not grown.
func (m *metrics) startAtZero() {
	for _, kind := range []relayer.OperationKind{
		relayer.OperationCreate, relayer.OperationGet, relayer.OperationList,
		relayer.OperationUpdate, relayer.OperationPause, relayer.OperationResume,
		relayer.OperationDisable, relayer.OperationEnable, relayer.OperationDelete,
	} {
		for _, ended := range outcome.All() {
			m.operations.WithLabelValues(string(kind), string(ended))
		}
		m.durations.WithLabelValues(string(kind))
	}
}

func (m *metrics) observe(ctx context.Context, operation relayer.Operation) {
	kind, ended := string(operation.Kind), string(outcome.Of(ctx, operation.Err))
	m.operations.WithLabelValues(kind, ended).Inc()
	m.durations.WithLabelValues(kind).Observe(operation.Took.Seconds())
}

// Describe is for the registry.
func (m *metrics) Describe(descriptions chan<- *client.Desc) {
	m.operations.Describe(descriptions)
	m.durations.Describe(descriptions)
}

// Collect is for the registry.
func (m *metrics) Collect(collected chan<- client.Metric) {
	m.operations.Collect(collected)
	m.durations.Collect(collected)
}
