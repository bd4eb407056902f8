package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// metric returns the value of a series.
func (p *process) metric(series string) float64 {
	p.t.Helper()
	_, text := p.do("GET", "/metrics", "")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		p.t.Fatalf("no series %s in\n%s", series, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return value
}

func (p *process) expectMetrics(want map[string]float64) {
	p.t.Helper()
	for series, value := range want {
		if got := p.metric(series); got != value {
			p.t.Errorf("%s is %v, want %v", series, got, value)
		}
	}
}

func TestMetrics_Responses(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	server.expectMetrics(map[string]float64{
		`relayerd_responses_total{code="200"}`: 0,
		`relayerd_responses_total{code="503"}`: 0,
	})
	for _, cause := range []string{"in_flight", "pages", "pending_bytes", "watchers", "bulk"} {
		server.expectMetrics(map[string]float64{`relayerd_refusals_total{cause="` + cause + `"}`: 0})
	}
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	server.expectStatus("GET", collection, token, "", http.StatusOK)
	server.expectStatus("HEAD", collection, token, "", http.StatusOK)
	server.expectStatus("GET", collection, "wrong", "", http.StatusUnauthorized)
	server.expectMetrics(map[string]float64{
		`relayerd_responses_total{code="200"}`: 2,
		`relayerd_responses_total{code="201"}`: 1,
		`relayerd_responses_total{code="401"}`: 1,
	})
	server.stop()
}

func TestMetrics_OpenStreams(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	server.expectMetrics(map[string]float64{"relayerd_open_streams": 0})
	for range 2 {
		response, err := call(t.Context(), server, "GET", changesPath, "")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		server.expectMetrics(map[string]float64{"relayerd_open_streams": 1})
		response.Body.Close()
		if !await(func() bool { return server.metric("relayerd_open_streams") == 0 }) {
			t.Error("the stream was closed, and is counted")
		}
	}
	server.expectStatus("GET", changesPath, "wrong", "", http.StatusUnauthorized)
	server.expectMetrics(map[string]float64{"relayerd_open_streams": 0})
	server.stop()
}

// The numbers are counted at the first scrape, and then every 15 seconds.
func TestMetrics_Contents(t *testing.T) {
	t.Parallel()
	for _, database := range []string{filepath.Join(t.TempDir(), "relayers.db"), "postgres"} {
		if database == "postgres" {
			database = location(t, startPostgres(t), "postgres")
		}
		server := start(t, token, "--db", database)
		for id, text := range map[string]string{"a": "evm", "b": "evm", "c": "solana", "d": "stellar"} {
			server.expectStatus("POST", collection, token, strings.NewReplacer("r-1", id, "evm", text).Replace(definition), http.StatusCreated)
		}
		server.expectStatus("PATCH", collection+"/b", token, `{"paused":true}`, http.StatusOK)
		server.expectMetrics(map[string]float64{
			`relayerd_relayers{network_type="evm",paused="false",system_disabled="false"}`:     1,
			`relayerd_relayers{network_type="evm",paused="true",system_disabled="false"}`:      1,
			`relayerd_relayers{network_type="evm",paused="false",system_disabled="true"}`:      0,
			`relayerd_relayers{network_type="solana",paused="false",system_disabled="false"}`:  1,
			`relayerd_relayers{network_type="stellar",paused="false",system_disabled="false"}`: 1,
			`relayer_operations_total{operation="list",outcome="ok"}`:                          0,
		})
		if isFilePath(database) && server.metric("relayerd_database_size_bytes") < 4096 {
			t.Error("the size of the file is missing")
		}
		server.stop()
	}
}
