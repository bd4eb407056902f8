package relayerprom_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/go-relayer/relayer"
	relayerprom "github.com/go-relayer/relayer/observe/prometheus"
)

func newObserver(t testing.TB) (relayer.Observer, *client.Registry) {
	t.Helper()
	registry := client.NewPedanticRegistry()
	return mustObserve(t, registry), registry
}

func mustObserve(t testing.TB, registerer client.Registerer) relayer.Observer {
	t.Helper()
	observe, err := relayerprom.NewObserver(registerer)
	must(t, err)
	return observe
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
