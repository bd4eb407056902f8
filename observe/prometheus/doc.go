// Package prometheus counts and times the operations of a [relayer.Manager] for
// Prometheus.
//
//	observer, err := prometheus.NewObserver(registry)
//	// …
//	manager, err := relayer.New(store, relayer.WithObserver(observer))
//
// It serves nothing by itself: the host has promhttp serve its registry.
//
// # Metrics
//
//	relayer_operations_total{operation,outcome}          operations that have ended
//	relayer_operation_duration_seconds{operation}        how long they lasted, from 10 µs to 10 s
//
// The operations are the kinds of [relayer.Operation], and the outcomes are the
// words of package outcome. A share of faults is, in PromQL:
//
//	sum(rate(relayer_operations_total{outcome=~"unavailable|unknown_outcome|error"}[5m]))
//	  / sum(rate(relayer_operations_total[5m]))
//
// All counters are there from the start, at zero, so that the first fault is an
// increase as well.
//
// No label has anything in it that a caller sent: neither ids, each of which
// would be a series of its own for ever, nor the text of errors.
package prometheus
