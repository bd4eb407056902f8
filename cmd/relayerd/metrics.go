package main

import (
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry returns a registry with the metrics of the process.
func newRegistry() *client.Registry {
	registry := client.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// backupMetrics describe the backups of --backup.
type backupMetrics struct {
	total       *client.CounterVec
	duration    client.Gauge
	size        client.Gauge
	lastSuccess client.Gauge
}

func newBackupMetrics(registry client.Registerer) backupMetrics {
	gauge := func(name, help string) client.Gauge {
		return client.NewGauge(client.GaugeOpts{Name: name, Help: help})
	}
	m := backupMetrics{
		total:       client.NewCounterVec(client.CounterOpts{Name: "relayerd_backups_total", Help: "Backups by outcome: success or failure."}, []string{"outcome"}),
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
