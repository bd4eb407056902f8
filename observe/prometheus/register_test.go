package prometheus_test

import (
	"errors"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/go-relayer/relayer/observe/prometheus"
)

func TestNoRegisterer(t *testing.T) {
	if observe, err := prometheus.NewObserver(nil); err == nil || observe != nil {
		t.Errorf("error is %v, want one and no observer", err)
	}
}

func TestRegisteredTwice(t *testing.T) {
	registry := client.NewPedanticRegistry()
	mustObserve(t, registry)
	observe, err := prometheus.NewObserver(registry)
	if observe != nil || !errors.As(err, new(client.AlreadyRegisteredError)) {
		t.Fatalf("error is %v, want an AlreadyRegisteredError and no observer", err)
	}
	if !strings.Contains(err.Error(), "relayer metrics") || !strings.Contains(err.Error(), "once") {
		t.Errorf("error %q does not say what was registered twice", err)
	}
}

// A registerer that has one of the names already takes neither metric.
func TestNameTaken(t *testing.T) {
	for _, name := range []string{operationsTotal, durationSeconds} {
		t.Run(name, func(t *testing.T) {
			registry := client.NewPedanticRegistry()
			registry.MustRegister(client.NewGauge(client.GaugeOpts{Name: name, Help: "Of another."}))
			if observe, err := prometheus.NewObserver(registry); err == nil || observe != nil {
				t.Fatalf("error is %v, want one and no observer", err)
			}
			if count, err := testutil.GatherAndCount(registry); count != 1 || err != nil {
				t.Errorf("%d metrics, %v; want only the one from before", count, err)
			}
		})
	}
}
