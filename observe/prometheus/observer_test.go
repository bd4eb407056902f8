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
	"github.com/go-relayer/relayer/observe/internal/observertest"
	"github.com/go-relayer/relayer/observe/outcome"
)

const (
	operationsTotal = "relayer_operations_total"
	durationSeconds = "relayer_operation_duration_seconds"
)

func TestObserver_EveryOperationAndOutcome(t *testing.T) {
	for _, call := range observertest.Calls() {
		for _, result := range observertest.Results() {
			t.Run(call.Name+" "+string(result.Outcome), func(t *testing.T) {
				observe, registry := newObserver(t)
				var operation relayer.Operation
				result.Run(t, call, func(ctx context.Context, observed relayer.Operation) {
					operation = observed
					observe(ctx, observed)
				})
				text, families := scrape(t, registry)
				checkCounters(t, families[operationsTotal], call.Kind, result.Outcome)
				checkHistograms(t, families[durationSeconds], operation)
				if secret := observertest.FindSecret(text); secret != "" {
					t.Errorf("%q is exported: %s", secret, text)
				}
			})
		}
	}
}

// checkCounters expects one counted operation and all other counters at zero.
func checkCounters(t *testing.T, family *dto.MetricFamily, kind relayer.OperationKind, result outcome.Outcome) {
	t.Helper()
	if want := kinds() * len(outcome.All()); family.GetType() != dto.MetricType_COUNTER || len(family.Metric) != want {
		t.Fatalf("%d counters of type %v, want %d", len(family.Metric), family.GetType(), want)
	}
	for _, metric := range family.Metric {
		labels := labelsOf(metric)
		want := 0.0
		if labels["operation"] == string(kind) && labels["outcome"] == string(result) {
			want = 1
		}
		if count := metric.Counter.GetValue(); count != want || len(labels) != 2 {
			t.Errorf("%v is %v, want %v", labels, count, want)
		}
	}
}

// checkHistograms expects the operation in its own histogram only.
func checkHistograms(t *testing.T, family *dto.MetricFamily, operation relayer.Operation) {
	t.Helper()
	if family.GetType() != dto.MetricType_HISTOGRAM || len(family.Metric) != kinds() {
		t.Fatalf("%d histograms of type %v, want %d", len(family.Metric), family.GetType(), kinds())
	}
	for _, metric := range family.Metric {
		labels, histogram := labelsOf(metric), metric.Histogram
		var count uint64
		var sum float64
		if labels["operation"] == string(operation.Kind) {
			count, sum = 1, operation.Took.Seconds()
		}
		if histogram.GetSampleCount() != count || histogram.GetSampleSum() != sum || len(labels) != 1 {
			t.Errorf("%v has %d operations of %v s, want %d of %v", labels, histogram.GetSampleCount(), histogram.GetSampleSum(), count, sum)
		}
	}
}

// kinds returns the number of operation kinds.
func kinds() int {
	distinct := make(map[relayer.OperationKind]bool)
	for _, call := range observertest.Calls() {
		distinct[call.Kind] = true
	}
	return len(distinct)
}

func TestObserver_Buckets(t *testing.T) {
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
			t.Errorf("bucket counts are %v", within)
		}
	}
}

func TestObserver_HostileIDs(t *testing.T) {
	observe, registry := newObserver(t)
	before, _ := scrape(t, registry)
	manager := newManager(t, relayer.WithObserver(observe))
	for _, id := range observertest.HostileIDs(10_000) {
		manager.Get(context.Background(), id)
	}
	after, _ := scrape(t, registry)
	if series(after) != series(before) {
		t.Errorf("%d series, want %d as before", series(after), series(before))
	}
	if secret := observertest.FindSecret(after); secret != "" {
		t.Errorf("%q is exported", secret)
	}
}

// An operation kind added by a later version is recorded too.
func TestObserver_UnknownKind(t *testing.T) {
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

func TestObserver_ConcurrentOperations(t *testing.T) {
	const callers, each = 16, 50
	observe, registry := newObserver(t)
	manager := newManager(t, relayer.WithObserver(observe))
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range each {
				manager.Get(context.Background(), observertest.ID)
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

func TestMetrics_Lint(t *testing.T) {
	_, registry := newObserver(t)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint found %v, %v", problems, err)
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

// A label per registerer separates the counts of two Managers.
func TestNewObserver_WrappedRegisterer(t *testing.T) {
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
