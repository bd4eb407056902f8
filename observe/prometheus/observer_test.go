package relayerprom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
	relayerprom "github.com/go-relayer/relayer/observe/prometheus"
)

const (
	operationsTotal = "relayer_operations_total"
	durationSeconds = "relayer_operation_duration_seconds"
)

// secret is in errors and IDs. It must not be exported.
const secret = "https://user:hunter2@rpc.example"

// failures has an error, or nil, for each outcome.
var failures = map[outcome.Outcome]error{
	outcome.OK:          nil,
	outcome.NotFound:    fmt.Errorf("%w: %s", relayer.ErrNotFound, secret),
	outcome.Exists:      relayer.ErrExists,
	outcome.Invalid:     &relayer.ValidationError{Fields: []relayer.FieldError{{Field: secret, Message: secret}}},
	outcome.Conflict:    relayer.ErrConflict,
	outcome.Unavailable: relayer.ErrUnavailable,
	outcome.Unknown:     relayer.ErrOutcomeUnknown,
	outcome.Error:       errors.New(secret),
	outcome.Canceled:    context.Canceled,
}

func TestObserver_EveryActionAndOutcome(t *testing.T) {
	for _, action := range outcome.Actions() {
		for result, err := range failures {
			t.Run(string(action)+" "+string(result), func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				if result == outcome.Canceled {
					cancel()
				}
				defer cancel()
				observe, registry := newObserver(t)
				_, end := observe(ctx, &relayer.Operation{Action: action, ID: secret})
				end(err)
				text, families := scrape(t, registry)
				checkCounters(t, families[operationsTotal], action, result)
				checkHistograms(t, families[durationSeconds], action)
				if strings.Contains(text, "hunter2") {
					t.Errorf("a secret is exported: %s", text)
				}
			})
		}
	}
}

// checkCounters expects one counted operation and all other counters at zero.
func checkCounters(t *testing.T, family *dto.MetricFamily, action relayer.Action, result outcome.Outcome) {
	t.Helper()
	if want := len(outcome.Actions()) * len(outcome.All()); family.GetType() != dto.MetricType_COUNTER || len(family.Metric) != want {
		t.Fatalf("%d counters of type %v, want %d", len(family.Metric), family.GetType(), want)
	}
	for _, metric := range family.Metric {
		labels := labelsOf(metric)
		want := 0.0
		if labels["operation"] == string(action) && labels["outcome"] == string(result) {
			want = 1
		}
		if count := metric.Counter.GetValue(); count != want || len(labels) != 2 {
			t.Errorf("%v is %v, want %v", labels, count, want)
		}
	}
}

// checkHistograms expects one operation in the histogram of its action only.
func checkHistograms(t *testing.T, family *dto.MetricFamily, action relayer.Action) {
	t.Helper()
	if family.GetType() != dto.MetricType_HISTOGRAM || len(family.Metric) != len(outcome.Actions()) {
		t.Fatalf("%d histograms of type %v, want %d", len(family.Metric), family.GetType(), len(outcome.Actions()))
	}
	for _, metric := range family.Metric {
		labels, histogram := labelsOf(metric), metric.Histogram
		isOf := labels["operation"] == string(action)
		if (histogram.GetSampleCount() == 1) != isOf || (histogram.GetSampleSum() > 0) != isOf || len(labels) != 1 {
			t.Errorf("%v has %d operations of %v s", labels, histogram.GetSampleCount(), histogram.GetSampleSum())
		}
	}
}

func TestObserver_Durations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observe, registry := newObserver(t)
		for _, took := range []time.Duration{time.Microsecond, 10 * time.Microsecond, 30 * time.Microsecond, 10 * time.Second, time.Minute} {
			_, end := observe(context.Background(), &relayer.Operation{Action: relayer.ActionGet})
			time.Sleep(took)
			end(nil)
		}
		families, err := registry.Gather()
		must(t, err)
		for _, family := range families {
			for _, metric := range family.Metric {
				if family.GetName() != durationSeconds || labelsOf(metric)["operation"] != "get" {
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
	})
}

func TestMetrics_Lint(t *testing.T) {
	_, registry := newObserver(t)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint found %v, %v", problems, err)
	}
}

// An observer needs a registerer of its own, in which both names are free.
func TestNewObserver_Errors(t *testing.T) {
	if observe, err := relayerprom.NewObserver(nil); err == nil || observe != nil {
		t.Errorf("error is %v, want one and no observer", err)
	}
	_, registry := newObserver(t)
	observe, err := relayerprom.NewObserver(registry)
	if observe != nil || !errors.As(err, new(client.AlreadyRegisteredError)) {
		t.Fatalf("error is %v, want an AlreadyRegisteredError and no observer", err)
	}
	if !strings.Contains(err.Error(), "relayer metrics") || !strings.Contains(err.Error(), "once") {
		t.Errorf("error %q does not name the metrics registered twice", err)
	}
	for _, name := range []string{operationsTotal, durationSeconds} {
		registry := client.NewPedanticRegistry()
		registry.MustRegister(client.NewGauge(client.GaugeOpts{Name: name, Help: "Another metric."}))
		if observe, err := relayerprom.NewObserver(registry); err == nil || observe != nil {
			t.Fatalf("%s: error is %v, want one and no observer", name, err)
		}
	}
}

func newObserver(t testing.TB) (relayer.Observer, *client.Registry) {
	t.Helper()
	registry := client.NewPedanticRegistry()
	observe, err := relayerprom.NewObserver(registry)
	must(t, err)
	return observe, registry
}

// scrape returns the metrics as text and as parsed by Prometheus.
func scrape(t testing.TB, registry *client.Registry) (string, map[string]*dto.MetricFamily) {
	t.Helper()
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	response, err := http.Get(server.URL)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	if contentType := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || !strings.HasPrefix(contentType, "text/plain") {
		t.Fatalf("scrape returned %s as %s", response.Status, contentType)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return string(text), families
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := make(map[string]string)
	for _, label := range metric.Label {
		labels[label.GetName()] = label.GetValue()
	}
	return labels
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
