// Package relayerprom counts and times the operations of a [relayer.Manager] for Prometheus.
//
//	observer, err := relayerprom.NewObserver(registry)
//	// …
//	manager, err := relayer.New(store, relayer.WithObserver(observer))
//
// It serves no endpoint: the host application serves its registry with promhttp.
//
// # Metrics
//
//	relayer_operations_total{operation,outcome}          completed operations
//	relayer_operation_duration_seconds{operation}        their durations, in buckets from 10 µs to 10 s
//
// The label operation is the action of [relayer.Operation], and outcome a word of
// package outcome. Dry runs count as operations. The PromQL query for the share of faults is:
//
//	sum(rate(relayer_operations_total{outcome=~"unavailable|unknown_outcome|error"}[5m]))
//	  / sum(rate(relayer_operations_total[5m]))
//
// All counters start at zero, so that rate and increase include the first fault.
//
// Labels never contain client input: no IDs, each of which would create a new time
// series, and no error texts.
package relayerprom

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// NewObserver registers the metrics and returns an observer for [relayer.WithObserver]. Managers
// that share an observer are counted together. To count them separately, create one observer per
// Manager, each with its own label through client_golang's WrapRegistererWith.
//
// NewObserver returns an error if the registerer is nil or rejects the metrics,
// for example because they are already registered. If only the name of the second one
// is taken, the first one stays registered.
func NewObserver(registerer client.Registerer) (relayer.Observer, error) {
	if registerer == nil {
		return nil, errors.New("relayerprom: registerer is nil")
	}
	operations := client.NewCounterVec(client.CounterOpts{
		Name: "relayer_operations_total",
		Help: "Relayer registry operations by outcome.",
	}, []string{"operation", "outcome"})
	durations := client.NewHistogramVec(client.HistogramOpts{
		Name:    "relayer_operation_duration_seconds",
		Help:    "Duration of relayer registry operations.",
		Buckets: buckets,
	}, []string{"operation"})
	for _, metric := range []client.Collector{operations, durations} {
		if err := registerer.Register(metric); err != nil {
			return nil, fmt.Errorf("relayerprom: register the relayer metrics (allowed once per registerer): %w", err)
		}
	}
	// The series of all known actions start at zero: the PromQL functions rate and increase
	// would ignore the first event of a series that starts at one.
	for _, action := range outcome.Actions() {
		durations.WithLabelValues(string(action))
		for _, result := range outcome.All() {
			operations.WithLabelValues(string(action), string(result))
		}
	}
	return func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		began := time.Now()
		return ctx, func(err error) {
			operations.WithLabelValues(string(operation.Action), string(outcome.Of(ctx, err))).Inc()
			durations.WithLabelValues(string(operation.Action)).Observe(time.Since(began).Seconds())
		}
	}, nil
}

// buckets are the upper bounds in seconds: from an in-memory read to a write on a slow
// disk. The default ones start at 5 ms, which is above most operations.
var buckets = []float64{
	1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
}
