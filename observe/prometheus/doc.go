// Package relayerprom counts and times the operations of a [relayer.Manager] for
// Prometheus.
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
