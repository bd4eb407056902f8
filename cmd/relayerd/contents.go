package main

import (
	"context"
	"crypto/rand"
	"math"
	"os"
	"strconv"
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
type relayersMetric struct {
	manager     *relayer.Manager
	description *promclient.Desc
	counts      *cached[[]stateCount]
}

type stateCount struct {
	networkType                relayer.NetworkType
	isPaused, isSystemDisabled bool
	count                      int
}

// newRelayersMetric counts with a separate Manager, so that its lists are not counted as
// operations.
func newRelayersMetric(store relayer.Store) (*relayersMetric, error) {
	manager, err := relayer.New(store)
	description := promclient.NewDesc("relayerd_relayers", "Relayers by network type and state.", []string{"network_type", "paused", "system_disabled"}, nil)
	m := &relayersMetric{manager: manager, description: description}
	m.counts = &cached[[]stateCount]{interval: countInterval, timeout: countInterval, load: m.count}
	return m, err
}

// Describe implements client_golang's Collector.
func (m *relayersMetric) Describe(descriptions chan<- *promclient.Desc) {
	descriptions <- m.description
}

// Collect implements client_golang's Collector.
func (m *relayersMetric) Collect(collected chan<- promclient.Metric) {
	for _, s := range m.counts.get(context.Background()) {
		collected <- promclient.MustNewConstMetric(m.description, promclient.GaugeValue, float64(s.count),
			string(s.networkType), strconv.FormatBool(s.isPaused), strconv.FormatBool(s.isSystemDisabled))
	}
}

// count returns nil if the store fails.
func (m *relayersMetric) count(ctx context.Context) (counts []stateCount) {
	// No relayer has this label. In a file, every selection has the damaged relayers, because
	// their fields are not known.
	damaged, err := m.total(ctx, relayer.Selector{}.Where("label.none", rand.Text()))
	if err != nil {
		return nil
	}
	for _, networkType := range relayer.NetworkTypes() {
		for _, isPaused := range []bool{false, true} {
			for _, isSystemDisabled := range []bool{false, true} {
				selector := relayer.Selector{}.
					Where("network_type", string(networkType)).
					Where("paused", strconv.FormatBool(isPaused)).
					Where("system_disabled", strconv.FormatBool(isSystemDisabled))
				selected, err := m.total(ctx, selector)
				if err != nil {
					return nil
				}
				counts = append(counts, stateCount{networkType, isPaused, isSystemDisabled, max(0, selected-damaged)})
			}
		}
	}
	return counts
}

func (m *relayersMetric) total(ctx context.Context, selector relayer.Selector) (int, error) {
	// A page past the end has the total, and no relayer that could be damaged.
	page, err := m.manager.List(ctx, relayer.ListQuery{Selector: selector, Page: math.MaxInt32, PerPage: 1})
	if err != nil {
		return 0, err
	}
	return page.Pagination.TotalItems, nil
}
