package main

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	relayerprom "github.com/go-relayer/relayer/observe/prometheus"
)

// newMetrics registers the metrics that need no store.
func (s *server) newMetrics() error {
	s.metrics = promclient.NewRegistry()
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.tlsCert != "" {
		s.gauge("relayerd_tls_certificate_expiry_timestamp_seconds", "Unix time at which the certificate of --tls-cert expires.",
			func() float64 { return float64(s.certificate.Load().Leaf.NotAfter.Unix()) })
	}
	observer, err := relayerprom.NewObserver(s.metrics)
	s.managerOptions = append(s.managerOptions, relayer.WithObserver(observer))
	return err
}

func (s *server) gauge(name, help string, value func() float64) {
	promauto.With(s.metrics).NewGaugeFunc(promclient.GaugeOpts{Name: name, Help: help}, value)
}

// fileSize returns 0 if the file cannot be examined.
func fileSize(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// countInterval is how long the numbers of relayers are kept: a scrape may need no token, and must
// not load the store.
const countInterval = 15 * time.Second

// countRelayers registers the numbers of relayers by network type and state.
func (s *server) countRelayers() error {
	manager, err := relayer.New(s.store) // its lists are not counted as operations
	if err != nil {
		return err
	}
	desc := promclient.NewDesc("relayerd_relayers", "Relayers by network type and state. Damaged ones are not counted.",
		[]string{"network_type", "paused", "system_disabled"}, nil)
	var mu sync.Mutex
	var counted time.Time
	var counts map[[3]string]float64
	return s.metrics.Register(describedCollector{desc, func(collected chan<- promclient.Metric) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(counted) >= countInterval {
			counts, counted = countByState(manager), time.Now()
		}
		for state, count := range counts {
			collected <- promclient.MustNewConstMetric(desc, promclient.GaugeValue, count, state[:]...)
		}
	}})
}

// describedCollector is a collector that does not collect when it is registered: a start of the server
// does not wait for the numbers of relayers.
type describedCollector struct {
	desc *promclient.Desc
	promclient.CollectorFunc
}

func (c describedCollector) Describe(descriptions chan<- *promclient.Desc) { descriptions <- c.desc }

// countByState returns NaN while the store is unavailable. It waits for it once: a scrape must not take
// as long as all counts.
func countByState(manager *relayer.Manager) map[[3]string]float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// No relayer has this label. In a file, every selection has the damaged relayers, because
	// their fields are not known.
	damaged, err := total(ctx, manager, relayer.Selector{}.Where("label.none", rand.Text()))
	counts := make(map[[3]string]float64)
	for _, networkType := range relayer.NetworkTypes() {
		for _, state := range [][2]string{{"false", "false"}, {"false", "true"}, {"true", "false"}, {"true", "true"}} {
			selector := relayer.Selector{}.Where("network_type", string(networkType)).Where("paused", state[0]).Where("system_disabled", state[1])
			selected := math.NaN()
			if err == nil {
				selected, err = total(ctx, manager, selector)
			}
			counts[[3]string{string(networkType), state[0], state[1]}] = selected - damaged
		}
	}
	return counts
}

func total(ctx context.Context, manager *relayer.Manager, selector relayer.Selector) (float64, error) {
	// A page past the end has the total, and no relayer that could be damaged.
	page, err := manager.List(ctx, relayer.ListQuery{Selector: selector, Page: math.MaxInt32, PerPage: 1})
	if err != nil {
		return math.NaN(), err
	}
	return float64(page.Pagination.TotalItems), nil
}

// countResponses counts the responses and streams of the API, and what its limits refuse, by cause.
func (s *server) countResponses(api *httpapi.API) http.Handler {
	factory := promauto.With(s.metrics)
	for cause := range api.Refusals() {
		factory.NewCounterFunc(promclient.CounterOpts{
			Name: "relayerd_refusals_total", Help: "Requests and streams that a limit of the API has refused, by its cause.",
			ConstLabels: promclient.Labels{"cause": cause},
		}, func() float64 { return float64(api.Refusals()[cause]) })
	}
	byStatus := factory.NewCounterVec(promclient.CounterOpts{Name: "relayerd_responses_total", Help: "Responses of the API by status."}, []string{"code"})
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable} { // the first one counts as an increase
		byStatus.WithLabelValues(strconv.Itoa(status))
	}
	responses := promhttp.InstrumentHandlerCounter(byStatus, api)
	streams := promhttp.InstrumentHandlerInFlight(
		factory.NewGauge(promclient.GaugeOpts{Name: "relayerd_open_streams", Help: "Change streams that clients follow."}), responses)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/relayers:watch" {
			streams.ServeHTTP(w, r)
			return
		}
		responses.ServeHTTP(w, r)
	})
}

// publicMetrics returns the handler of /metrics on --addr. Metrics are about all relayers: they
// exist only for tokens that may list all of them. The API responds to all other requests,
// and to all with --metrics-addr.
func (s *server) publicMetrics(api http.Handler) http.Handler {
	handler := promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, granted := s.tokens.grantFor(r)
		if s.metricsAddress != "" || !granted.within.IsZero() || !granted.permits(relayer.ActionList) {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		handler.ServeHTTP(w, r)
	})
}

// serveMetrics serves /metrics on --metrics-addr, if it is set.
func (s *server) serveMetrics() error {
	if s.metricsAddress == "" {
		return nil
	}
	listener, err := listen("--metrics-addr", s.metricsAddress)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	server := newServer(mux, s.logger)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("metrics are not served any more", "error", err.Error())
		}
	})
	s.logger.Info("serving metrics", "address", listener.Addr().String())
	s.onClose(func() { _ = server.Close(); serving.Wait() })
	return nil
}
