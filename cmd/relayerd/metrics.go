package main

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-relayer/relayer"
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

func newExpiryMetric(c *certificate) promclient.Collector {
	options := promclient.GaugeOpts{Name: "relayerd_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate of --tls-cert expires."}
	return promclient.NewGaugeFunc(options, func() float64 { return float64(c.expiry().Unix()) })
}

type metrics struct {
	registry *promclient.Registry
	observer relayer.Observer
	handler  http.Handler
	stop     func()
	traffic  *traffic
}

// openMetrics serves /metrics on --metrics-addr, if it is set, until stop is called.
func openMetrics(c config, certificate *certificate, logger *slog.Logger) (m metrics, err error) {
	registry := promclient.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m = metrics{registry: registry, stop: func() {}, traffic: newTraffic(registry)}
	if certificate != nil {
		registry.MustRegister(newExpiryMetric(certificate))
	}
	if m.observer, err = relayerprom.NewObserver(registry); err != nil {
		return metrics{}, err
	}
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	if c.metricsAddress != "" {
		m.stop, err = serveMetrics(c.metricsAddress, m.handler, logger)
	}
	return m, err
}

// publicMetrics returns the handler of /metrics on --addr. Metrics are about all relayers, so
// that they exist only for tokens without a selector. The API responds to all other requests,
// and to all with --metrics-addr.
func (s *server) publicMetrics(api http.Handler) http.Handler {
	if s.metricsAddress != "" {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, err := s.authenticate(r)
		if err != nil || s.seesAll != nil && !s.seesAll(actor) {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		s.metrics.handler.ServeHTTP(w, r)
	})
}

// serveMetrics serves /metrics on another address until stop is called.
func serveMetrics(address string, metrics http.Handler, logger *slog.Logger) (stop func(), err error) {
	listener, err := listen("--metrics-addr", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	server := newServer(mux, logger)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("metrics are not served any more", "error", err.Error())
		}
	})
	logger.Info("serving metrics", "address", listener.Addr().String())
	return func() { _ = server.Close(); serving.Wait() }, nil
}
