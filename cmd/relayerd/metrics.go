package main

import (
	"context"
	"errors"
	"math"
	"net/http"
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
		promauto.With(s.metrics).NewGaugeFunc(promclient.GaugeOpts{
			Name: "relayerd_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate of --tls-cert expires.",
		}, func() float64 { return float64(s.certificate.Load().Leaf.NotAfter.Unix()) })
	}
	observer, err := relayerprom.NewObserver(s.metrics)
	s.managerOptions = append(s.managerOptions, relayer.WithObserver(observer))
	return err
}

// countInterval is how long the numbers of relayers are kept: a scrape may need no token, and must
// not load the store.
const countInterval = 15 * time.Second

// countRelayers registers the numbers of relayers by state. Its lists are not counted as operations.
func (s *server) countRelayers() error {
	manager, err := relayer.New(s.store)
	if err != nil {
		return err
	}
	for state, selector := range map[string]relayer.Selector{
		"active":   relayer.Selector{}.Where("system_disabled", "false").Where("paused", "false"),
		"paused":   relayer.Selector{}.Where("system_disabled", "false").Where("paused", "true"),
		"disabled": relayer.Selector{}.Where("system_disabled", "true"),
	} {
		count := cached(countInterval, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			// A page past the end has the total, and no relayer that could be damaged.
			page, err := manager.List(ctx, relayer.ListQuery{Selector: selector, Page: math.MaxInt32, PerPage: 1})
			if err != nil {
				return math.NaN()
			}
			return float64(page.Pagination.TotalItems)
		})
		promauto.With(s.metrics).NewGaugeFunc(promclient.GaugeOpts{
			Name: "relayerd_relayers", Help: "Relayers by state. A disabled one does not count as paused too. A damaged one can count in each state.",
			ConstLabels: promclient.Labels{"state": state},
		}, count)
	}
	return nil
}

// countResponses counts the responses of the API, and [httpapi.API.Refusals] by cause.
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
	return promhttp.InstrumentHandlerCounter(byStatus, api)
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
