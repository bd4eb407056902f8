package prometheus_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/drive"
	"github.com/go-relayer/relayer/observe/outcome"
)

const (
	operationsTotal = "relayer_operations_total"
	durationSeconds = "relayer_operation_duration_seconds"
)

func TestEveryOperationWithEveryOutcome(t *testing.T) {
	for _, call := range drive.Calls() {
		for _, ending := range drive.Endings() {
			t.Run(call.Name+" "+string(ending.Outcome), func(t *testing.T) {
				observe, registry := newObserver(t)
				var told relayer.Operation
				ending.Drive(t, call, func(ctx context.Context, operation relayer.Operation) {
					told = operation
					observe(ctx, operation)
				})
				text, families := scrape(t, registry)
				checkCounters(t, families[operationsTotal], call.Kind, ending.Outcome)
				checkHistograms(t, families[durationSeconds], told)
				if secret := drive.Leak(text); secret != "" {
					t.Errorf("%q is exported: %s", secret, text)
				}
			})
		}
	}
}

// checkCounters wants one operation counted, and every other counter there, at
// zero.
func checkCounters(t *testing.T, family *dto.MetricFamily, kind relayer.OperationKind, ended outcome.Outcome) {
	t.Helper()
	if want := kinds() * len(outcome.All()); family.GetType() != dto.MetricType_COUNTER || len(family.Metric) != want {
		t.Fatalf("%d counters of type %v, want %d", len(family.Metric), family.GetType(), want)
	}
	for _, metric := range family.Metric {
		labels := labelsOf(metric)
		want := 0.0
		if labels["operation"] == string(kind) && labels["outcome"] == string(ended) {
			want = 1
		}
		if count := metric.Counter.GetValue(); count != want || len(labels) != 2 {
			t.Errorf("%v is %v, want %v", labels, count, want)
		}
	}
}

// checkHistograms wants the operation in its histogram, and nothing in any
// other.
func checkHistograms(t *testing.T, family *dto.MetricFamily, told relayer.Operation) {
	t.Helper()
	if family.GetType() != dto.MetricType_HISTOGRAM || len(family.Metric) != kinds() {
		t.Fatalf("%d histograms of type %v, want %d", len(family.Metric), family.GetType(), kinds())
	}
	for _, metric := range family.Metric {
		labels, histogram := labelsOf(metric), metric.Histogram
		var count uint64
		var sum float64
		if labels["operation"] == string(told.Kind) {
			count, sum = 1, told.Took.Seconds()
		}
		if histogram.GetSampleCount() != count || histogram.GetSampleSum() != sum || len(labels) != 1 {
			t.Errorf("%v has %d operations of %v s, want %d of %v", labels, histogram.GetSampleCount(), histogram.GetSampleSum(), count, sum)
		}
	}
}

// kinds is how many kinds of operation there are.
func kinds() int {
	distinct := make(map[relayer.OperationKind]bool)
	for _, call := range drive.Calls() {
		distinct[call.Kind] = true
	}
	return len(distinct)
}

func TestBuckets(t *testing.T) {
	observe, registry := newObserver(t)
	for _, took := range []time.Duration{time.Microsecond, 10 * time.Microsecond, 30 * time.Microsecond, 10 * time.Second, time.Minute} {
		observe(context.Background(), relayer.Operation{Kind: relayer.OperationGet, Took: took})
	}
	_, families := scrape(t, registry)
	for _, metric := range families[durationSeconds].Metric {
		if labelsOf(metric)["operation"] != "get" {
			continue
		}
		within := make(map[float64]uint64)
		for _, bucket := range metric.Histogram.Bucket {
			within[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
		}
		if within[10e-6] != 2 || within[25e-6] != 2 || within[50e-6] != 3 || within[5] != 3 || within[10] != 4 {
			t.Errorf("buckets have %v", within)
		}
	}
}

func TestHostileIDs(t *testing.T) {
	observe, registry := newObserver(t)
	before, _ := scrape(t, registry)
	manager := newManager(t, relayer.WithObserver(observe))
	for _, id := range drive.HostileIDs(10_000) {
		manager.Get(context.Background(), id)
	}
	after, _ := scrape(t, registry)
	if series(after) != series(before) {
		t.Errorf("%d series, want the %d from before", series(after), series(before))
	}
	if secret := drive.Leak(after); secret != "" {
		t.Errorf("%q is exported", secret)
	}
}

// A kind of operation that was added since is counted all the same.
func TestNewKind(t *testing.T) {
	observe, registry := newObserver(t)
	observe(context.Background(), relayer.Operation{Kind: "rename", Took: time.Second})
	text, _ := scrape(t, registry)
	for _, line := range []string{
		`relayer_operations_total{operation="rename",outcome="ok"} 1`,
		`relayer_operation_duration_seconds_sum{operation="rename"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in %s", line, text)
		}
	}
}

func TestConcurrentOperations(t *testing.T) {
	const callers, each = 16, 50
	observe, registry := newObserver(t)
	manager := newManager(t, relayer.WithObserver(observe))
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range each {
				manager.Get(context.Background(), drive.ID)
				manager.List(context.Background(), 1, 10)
			}
		})
		running.Go(func() {
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()

	_, families := scrape(t, registry)
	counted := 0.0
	for _, metric := range families[operationsTotal].Metric {
		counted += metric.Counter.GetValue()
	}
	if counted != 2*callers*each {
		t.Errorf("%v operations counted, want %d", counted, 2*callers*each)
	}
}

func TestNamesAndHelp(t *testing.T) {
	_, registry := newObserver(t)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint finds %v, %v", problems, err)
	}
	for name, want := range map[string]int{
		operationsTotal: kinds() * len(outcome.All()),
		durationSeconds: kinds(),
	} {
		if count, err := testutil.GatherAndCount(registry, name); err != nil || count != want {
			t.Errorf("%d of %s, %v; want %d", count, name, err, want)
		}
	}
}

// Two Managers that are to be counted apart have a label each.
func TestWrappedRegisterer(t *testing.T) {
	registry := client.NewPedanticRegistry()
	for _, name := range []string{"live", "trial"} {
		observe := mustObserve(t, client.WrapRegistererWith(client.Labels{"registry": name}, registry))
		newManager(t, relayer.WithObserver(observe)).List(context.Background(), 1, 10)
	}
	_, families := scrape(t, registry)
	counted := make(map[string]float64)
	for _, metric := range families[operationsTotal].Metric {
		counted[labelsOf(metric)["registry"]] += metric.Counter.GetValue()
	}
	if counted["live"] != 1 || counted["trial"] != 1 {
		t.Errorf("counted %v, want one operation each", counted)
	}
}
