package main

import (
	"net/http"
	"strconv"

	promclient "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer/httpapi"
)

const watchPath = "/api/v1/relayers:watch"

type traffic struct {
	responses *promclient.CounterVec
	usual     map[int]promclient.Counter // by status
	streams   promclient.Gauge
}

// newTraffic starts the series of the usual statuses at zero, so that the first response
// counts as an increase.
func newTraffic(registry promclient.Registerer) *traffic {
	t := &traffic{
		responses: promclient.NewCounterVec(promclient.CounterOpts{Name: "relayerd_responses_total", Help: "Responses of the API by status."}, []string{"status"}),
		usual:     make(map[int]promclient.Counter),
		streams:   promclient.NewGauge(promclient.GaugeOpts{Name: "relayerd_open_streams", Help: "Change streams that clients follow."}),
	}
	for _, status := range []int{200, 201, 304, 400, 401, 403, 404, 405, 409, 412, 413, 415, 429, 500, 503} {
		t.usual[status] = t.counter(status)
	}
	registry.MustRegister(t.responses, t.streams)
	return t
}

// registerRefusals adds what the limits of the API refuse, by cause.
func registerRefusals(registry promclient.Registerer, api *httpapi.API) {
	for cause := range api.Refusals() {
		options := promclient.CounterOpts{
			Name: "relayerd_refusals_total", Help: "Requests and streams that a limit of the API has refused, by its cause.",
			ConstLabels: promclient.Labels{"cause": cause},
		}
		registry.MustRegister(promclient.NewCounterFunc(options, func() float64 { return float64(api.Refusals()[cause]) }))
	}
}

func (t *traffic) counter(status int) promclient.Counter {
	if counter, ok := t.usual[status]; ok {
		return counter
	}
	return t.responses.WithLabelValues(strconv.Itoa(status))
}

func (t *traffic) count(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted := &countedResponse{ResponseWriter: w, traffic: t, isStream: r.URL.Path == watchPath}
		defer counted.end()
		api.ServeHTTP(counted, r)
	})
}

// countedResponse counts a response when its status is known.
type countedResponse struct {
	http.ResponseWriter
	traffic   *traffic
	isStream  bool
	isStarted bool
	isOpen    bool
}

// Unwrap returns the writer that [http.ResponseController] controls.
func (w *countedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedResponse) WriteHeader(status int) {
	if !w.isStarted && status >= http.StatusOK {
		w.isStarted = true
		w.traffic.counter(status).Inc()
		if w.isOpen = w.isStream && status == http.StatusOK; w.isOpen {
			w.traffic.streams.Inc()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countedResponse) Write(data []byte) (int, error) {
	if !w.isStarted {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

func (w *countedResponse) end() {
	if w.isOpen {
		w.traffic.streams.Dec()
	}
}
