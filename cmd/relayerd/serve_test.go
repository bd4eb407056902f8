package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMetricsAddress_SeparatePort(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--metrics-addr", "127.0.0.1:0")
	found := regexp.MustCompile(`msg="serving metrics" address=(\S+)`).FindStringSubmatch(server.output.String())
	if found == nil {
		t.Fatalf("no address of the metrics: %s", server.output)
	}
	metrics := &process{t: t, url: "http://" + found[1]}
	metrics.expectStatus("GET", "/metrics", "", "", http.StatusOK)
	if status, body := metrics.do("GET", "/metrics", ""); status != http.StatusOK || !strings.Contains(body, "relayer_operations_total") {
		t.Errorf("metrics returned %d: %s", status, body)
	}
	for _, path := range []string{"/", collection, "/healthz/live"} {
		if status, body := metrics.do("GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s on the port of the metrics returned %d: %s", path, status, body)
		}
	}
	server.expectStatus("GET", "/metrics", token, "", http.StatusNotFound)
	server.expectStatus("GET", "/metrics", "wrong", "", http.StatusUnauthorized)
	server.expectStatus("GET", collection, token, "", http.StatusOK)

	expectFailedStart(t, "address already in use (choose another address with --metrics-addr)", "--db", "memory", "--metrics-addr", found[1])
	server.stop()
	expectFailedStart(t, "--metrics-addr must be host:port", "--db", "memory", "--metrics-addr", "u:"+password+"@h/d")
}

// Without an address of their own, the metrics need a token, and one that sees all relayers.
func TestMetrics_NeedToken(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	for _, method := range []string{"GET", "HEAD"} {
		server.expectStatus(method, "/metrics", "", "", http.StatusUnauthorized)
		server.expectStatus(method, "/metrics", "wrong", "", http.StatusUnauthorized)
		server.expectStatus(method, "/metrics", token, "", http.StatusOK)
	}
	server.stop()

	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "prometheus "+readerToken+" read", "payments "+newToken+" write label.team=payments")
	server = start(t, "", "--db", "memory", "--tokens-file", path)
	server.expectStatus("GET", "/metrics", readerToken, "", http.StatusOK)
	server.expectStatus("GET", "/metrics", newToken, "", http.StatusNotFound)
	server.expectStatus("GET", "/metrics", oldToken, "", http.StatusUnauthorized)
	writeTokens(t, path, "prometheus "+oldToken+" read")
	server.reload(`msg="file reloaded" flag=--tokens-file`)
	server.expectStatus("GET", "/metrics", readerToken, "", http.StatusUnauthorized)
	server.expectStatus("GET", "/metrics", oldToken, "", http.StatusOK)
	server.stop()
}
