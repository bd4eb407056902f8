package main

import (
	"errors"
	"net/http"
	"strconv"
	"sync"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	relayerprom "github.com/go-relayer/relayer/observe/prometheus"
)

type backupMetrics struct {
	total       *promclient.CounterVec
	duration    promclient.Gauge
	size        promclient.Gauge
	lastSuccess promclient.Gauge
}

func newBackupMetrics(registry promclient.Registerer) backupMetrics {
	gauge := func(name, help string) promclient.Gauge {
		return promclient.NewGauge(promclient.GaugeOpts{Name: name, Help: help})
	}
	m := backupMetrics{
		total:       promclient.NewCounterVec(promclient.CounterOpts{Name: "relayerd_backups_total", Help: "Backups by outcome: success or failure."}, []string{"outcome"}),
		duration:    gauge("relayerd_backup_duration_seconds", "Duration of the last successful backup."),
		size:        gauge("relayerd_backup_size_bytes", "Size of the last successful backup."),
		lastSuccess: gauge("relayerd_backup_last_success_timestamp_seconds", "Unix time of the last successful backup, or 0."),
	}
	for _, outcome := range []string{"success", "failure"} {
		m.total.WithLabelValues(outcome)
	}
	registry.MustRegister(m.total, m.duration, m.size, m.lastSuccess)
	return m
}

type metrics struct {
	registry  *promclient.Registry
	observer  relayer.Observer
	handler   http.Handler
	responses *promclient.CounterVec
	streams   promclient.Gauge
}

func (s *server) openMetrics() (err error) {
	m := metrics{
		registry:  promclient.NewRegistry(),
		responses: promclient.NewCounterVec(promclient.CounterOpts{Name: "relayerd_responses_total", Help: "Responses of the API by status."}, []string{"code"}),
		streams:   promclient.NewGauge(promclient.GaugeOpts{Name: "relayerd_open_streams", Help: "Change streams that clients follow."}),
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.responses, m.streams)
	// The first response with a usual status counts as an increase.
	for _, status := range []int{200, 201, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 429, 500, 503} {
		m.responses.WithLabelValues(strconv.Itoa(status))
	}
	if s.certificate != nil {
		options := promclient.GaugeOpts{Name: "relayerd_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate of --tls-cert expires."}
		m.registry.MustRegister(promclient.NewGaugeFunc(options, func() float64 { return float64(s.certificate.Load().Leaf.NotAfter.Unix()) }))
	}
	if m.observer, err = relayerprom.NewObserver(m.registry); err == nil {
		s.metrics = m
	}
	return err
}

// count counts the responses and streams of the API, and what its limits refuse, by cause.
func (m metrics) count(api *httpapi.API) http.Handler {
	for cause := range api.Refusals() {
		options := promclient.CounterOpts{
			Name: "relayerd_refusals_total", Help: "Requests and streams that a limit of the API has refused, by its cause.",
			ConstLabels: promclient.Labels{"cause": cause},
		}
		m.registry.MustRegister(promclient.NewCounterFunc(options, func() float64 { return float64(api.Refusals()[cause]) }))
	}
	responses := promhttp.InstrumentHandlerCounter(m.responses, api)
	streams := promhttp.InstrumentHandlerInFlight(m.streams, responses)
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
	if s.metricsAddress != "" {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, granted, ok := s.tokens.grantFor(r)
		if !ok || granted.within.String() != "" || !granted.role.permits(relayer.ActionList) {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		s.metrics.handler.ServeHTTP(w, r)
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
	mux.Handle("GET /metrics", s.metrics.handler)
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
