package main

import (
	"net/http"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/prometheus"
)

// newMetrics returns an observer that counts and times the operations of the
// registry, and a handler that exports its metrics and those of the process.
func newMetrics() (relayer.Observer, http.Handler, error) {
	registry := client.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	observer, err := prometheus.NewObserver(registry)
	return observer, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}
