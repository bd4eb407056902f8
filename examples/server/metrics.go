package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// metrics counts and times the operations of the registry. This server shows
// them by hand, so that it runs with what the library itself depends on; a
// service that has a Prometheus client uses observe/prometheus, whose metrics have
// the same names and finer buckets.
type metrics struct {
	mu     sync.Mutex
	counts map[operationOutcome]int
	times  map[relayer.OperationKind]*histogram
}

type operationOutcome struct {
	operation relayer.OperationKind
	outcome   outcome.Outcome
}

// histogramBounds are the upper bounds of the buckets, in seconds.
var histogramBounds = [...]float64{0.00001, 0.0001, 0.001, 0.01, 0.1, 1, 10}

type histogram struct {
	upTo  [len(histogramBounds)]int // how many took no longer than each bound
	count int
	sum   time.Duration
}

func newMetrics() *metrics {
	return &metrics{counts: make(map[operationOutcome]int), times: make(map[relayer.OperationKind]*histogram)}
}

// observe is a [relayer.Observer].
func (m *metrics) observe(ctx context.Context, operation relayer.Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[operationOutcome{operation.Kind, outcome.Of(ctx, operation.Err)}]++
	times := m.times[operation.Kind]
	if times == nil {
		times = new(histogram)
		m.times[operation.Kind] = times
	}
	times.count++
	times.sum += operation.Took
	for i, bound := range histogramBounds {
		if operation.Took.Seconds() <= bound {
			times.upTo[i]++
		}
	}
}

// ServeHTTP shows the metrics in the text format of Prometheus.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(m.text())
}

func (m *metrics) text() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out bytes.Buffer
	out.WriteString("# HELP relayer_operations_total Operations of the registry that have ended.\n# TYPE relayer_operations_total counter\n")
	inOrder := func(a, b operationOutcome) int {
		return strings.Compare(string(a.operation)+" "+string(a.outcome), string(b.operation)+" "+string(b.outcome))
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.counts), inOrder) {
		fmt.Fprintf(&out, "relayer_operations_total{operation=%q,outcome=%q} %d\n", key.operation, key.outcome, m.counts[key])
	}
	out.WriteString("# HELP relayer_operation_duration_seconds How long operations took.\n# TYPE relayer_operation_duration_seconds histogram\n")
	for _, operation := range slices.Sorted(maps.Keys(m.times)) {
		times := m.times[operation]
		for i, bound := range histogramBounds {
			fmt.Fprintf(&out, "relayer_operation_duration_seconds_bucket{operation=%q,le=\"%g\"} %d\n", operation, bound, times.upTo[i])
		}
		fmt.Fprintf(&out, "relayer_operation_duration_seconds_bucket{operation=%q,le=\"+Inf\"} %d\n", operation, times.count)
		fmt.Fprintf(&out, "relayer_operation_duration_seconds_sum{operation=%q} %g\n", operation, times.sum.Seconds())
		fmt.Fprintf(&out, "relayer_operation_duration_seconds_count{operation=%q} %d\n", operation, times.count)
	}
	return out.Bytes()
}
