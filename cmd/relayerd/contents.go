package main

import (
	"context"
	"crypto/rand"
	"math"
	"os"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
)

func newSizeMetric(path string) promclient.Collector {
	options := promclient.GaugeOpts{Name: "relayerd_database_size_bytes", Help: "Size of the database file."}
	return promclient.NewGaugeFunc(options, func() float64 { return fileSize(path) })
}

// fileSize returns 0 if the file cannot be examined.
func fileSize(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// countInterval is the time for which the numbers of relayers are kept, which take some
// queries of the database.
const countInterval = 15 * time.Second

// relayersMetric has the numbers of relayers by network type and state. There are none
// while the store is unavailable.
type relayersMetric struct{ counts cached[[]promclient.Metric] }

var relayersDescription = promclient.NewDesc("relayerd_relayers", "Relayers by network type and state.", []string{"network_type", "paused", "system_disabled"}, nil)

// newRelayersMetric counts with a separate Manager, so that its lists are not counted as
// operations.
func newRelayersMetric(store relayer.Store) (*relayersMetric, error) {
	manager, err := relayer.New(store)
	return &relayersMetric{cached[[]promclient.Metric]{interval: countInterval, timeout: countInterval, load: func(ctx context.Context) []promclient.Metric {
		return countRelayers(ctx, manager)
	}}}, err
}

// Describe implements client_golang's Collector.
func (m *relayersMetric) Describe(descriptions chan<- *promclient.Desc) {
	descriptions <- relayersDescription
}

// Collect implements client_golang's Collector.
func (m *relayersMetric) Collect(collected chan<- promclient.Metric) {
	for _, count := range m.counts.get(context.Background()) {
		collected <- count
	}
}

// countRelayers returns nil if the store fails.
func countRelayers(ctx context.Context, manager *relayer.Manager) (counts []promclient.Metric) {
	total := func(selector relayer.Selector) (int, error) {
		// A page past the end has the total, and no relayer that could be damaged.
		page, err := manager.List(ctx, relayer.ListQuery{Selector: selector, Page: math.MaxInt32, PerPage: 1})
		if err != nil {
			return 0, err
		}
		return page.Pagination.TotalItems, nil
	}
	// No relayer has this label. In a file, every selection has the damaged relayers, because
	// their fields are not known.
	damaged, err := total(relayer.Selector{}.Where("label.none", rand.Text()))
	for _, networkType := range relayer.NetworkTypes() {
		for _, state := range [][2]string{{"false", "false"}, {"false", "true"}, {"true", "false"}, {"true", "true"}} {
			selector := relayer.Selector{}.Where("network_type", string(networkType)).Where("paused", state[0]).Where("system_disabled", state[1])
			selected := 0
			if err == nil {
				selected, err = total(selector)
			}
			if err != nil {
				return nil
			}
			counts = append(counts, promclient.MustNewConstMetric(relayersDescription, promclient.GaugeValue, float64(max(0, selected-damaged)),
				string(networkType), state[0], state[1]))
		}
	}
	return counts
}
