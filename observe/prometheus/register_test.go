package relayerprom_test

import (
	"errors"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	relayerprom "github.com/go-relayer/relayer/observe/prometheus"
)

func TestNewObserver_NilRegisterer(t *testing.T) {
	if observe, err := relayerprom.NewObserver(nil); err == nil || observe != nil {
		t.Errorf("error is %v, want one and no observer", err)
	}
}

func TestNewObserver_RegisteredTwice(t *testing.T) {
	registry := client.NewPedanticRegistry()
	mustObserve(t, registry)
	observe, err := relayerprom.NewObserver(registry)
	if observe != nil || !errors.As(err, new(client.AlreadyRegisteredError)) {
		t.Fatalf("error is %v, want an AlreadyRegisteredError and no observer", err)
	}
	if !strings.Contains(err.Error(), "relayer metrics") || !strings.Contains(err.Error(), "once") {
		t.Errorf("error %q does not name the metrics registered twice", err)
	}
}

// If one name is taken, neither metric is registered.
func TestNewObserver_NameTaken(t *testing.T) {
	for _, name := range []string{operationsTotal, durationSeconds} {
		t.Run(name, func(t *testing.T) {
			registry := client.NewPedanticRegistry()
			registry.MustRegister(client.NewGauge(client.GaugeOpts{Name: name, Help: "Another metric."}))
			if observe, err := relayerprom.NewObserver(registry); err == nil || observe != nil {
				t.Fatalf("error is %v, want one and no observer", err)
			}
			if count, err := testutil.GatherAndCount(registry); count != 1 || err != nil {
				t.Errorf("%d metrics, %v; want only the existing one", count, err)
			}
		})
	}
}
