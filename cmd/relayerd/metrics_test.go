package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// metric returns the value of a series, or -1 if there is none.
func (p *process) metric(series string) float64 {
	p.t.Helper()
	_, text := p.do("GET", "/metrics", "")
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	value, err := strconv.ParseFloat(found[1], 64)
	must(p.t, err)
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

func TestMetrics_Operations(t *testing.T) {
	t.Parallel()
	server := startMemory(t)
	for _, cause := range []string{"in_flight", "pages", "pending_bytes", "watchers", "bulk"} {
		server.expectMetrics(map[string]float64{`relayerd_refusals_total{cause="` + cause + `"}`: 0})
	}
	server.expect("POST", collection, token, definition, http.StatusCreated)
	server.expect("GET", collection, token, "", http.StatusOK)
	server.expect("HEAD", collection, token, "", http.StatusOK)
	server.expect("GET", collection+"/absent-id", token, "", http.StatusNotFound)
	server.expect("GET", collection+":watch", "wrong", "", http.StatusUnauthorized)
	server.expectMetrics(map[string]float64{
		`relayerd_responses_total{code="200"}`: 2, `relayerd_responses_total{code="201"}`: 1, `relayerd_responses_total{code="401"}`: 1,
		`relayer_operations_total{operation="create",outcome="ok"}`: 1, `relayer_operations_total{operation="get",outcome="not_found"}`: 1,
		`relayer_operation_duration_seconds_count{operation="list"}`: 2,
	})
	_, body := server.do("GET", "/metrics", "")
	if strings.Contains(body, "absent-id") || !strings.Contains(body, "\ngo_goroutines ") || !strings.Contains(body, "\nprocess_start_time_seconds ") {
		t.Errorf("the metrics have an ID, or not those of the process: %s", body)
	}
	server.stop()
}

func TestMetrics_Relayers(t *testing.T) {
	t.Parallel()
	for _, database := range []string{filepath.Join(t.TempDir(), "relayers.db"), newDatabase(t)} {
		server := start(t, token, "--db", database)
		for _, id := range []string{"a", "b", "c", "d"} {
			server.expect("POST", collection, token, definitionOf(id), http.StatusCreated)
		}
		server.expect("PATCH", collection+"/b", token, `{"paused":true}`, http.StatusOK)
		server.expectMetrics(map[string]float64{
			`relayerd_responses_total{code="500"}`:                    0, // the first one is an increase
			`relayerd_relayers{state="active"}`:                       3,
			`relayerd_relayers{state="paused"}`:                       1,
			`relayerd_relayers{state="disabled"}`:                     0,
			`relayer_operations_total{operation="list",outcome="ok"}`: 0,
		})
		server.stop()
	}
}

// A start does not wait for the numbers of relayers: each use of this store would panic.
func TestMetrics_RegisterWithoutReading(t *testing.T) {
	must(t, (&server{metrics: promclient.NewRegistry(), store: struct{ openedStore }{}}).countRelayers())
}

// Metrics need a token that may list all relayers, or an address of their own, which has nothing else.
func TestMetrics_Access(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t, "prometheus "+readerToken+" read", "payments "+newToken+" write label.team=payments", "saver "+oldToken+" backup")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens)
	for _, method := range []string{"GET", "HEAD"} {
		for bearer, want := range map[string]int{readerToken: http.StatusOK, newToken: http.StatusNotFound, oldToken: http.StatusNotFound, "wrong": http.StatusUnauthorized, "": http.StatusUnauthorized} {
			server.expect(method, "/metrics", bearer, "", want)
		}
	}
	writeTokens(t, tokens, "other "+newToken+" read")
	server.reload(`msg="file reloaded" flag=--tokens-file`)
	server.expect("GET", "/metrics", readerToken, "", http.StatusUnauthorized)
	server.stop()

	server = startMemory(t, "--metrics-addr", "127.0.0.1:0")
	found := regexp.MustCompile(`msg="serving metrics" address=(\S+)`).FindStringSubmatch(server.output.String())
	if found == nil {
		t.Fatalf("no address of the metrics: %s", server.output)
	}
	metrics := &process{t: t, url: "http://" + found[1]}
	if body := metrics.expect("GET", "/metrics", "", "", http.StatusOK); !strings.Contains(body, "relayer_operations_total") {
		t.Errorf("the metrics are %s", body)
	}
	for _, path := range []string{"/", collection, "/healthz/live"} {
		metrics.expect("GET", path, "", "", http.StatusNotFound)
	}
	server.expect("GET", "/metrics", token, "", http.StatusNotFound)
	server.expect("GET", "/metrics", "wrong", "", http.StatusUnauthorized)
	server.stop()
}

// The page and the health checks need no token. All other requests without one get 401 in JSON, also
// unusual ones.
func TestSite_Requests(t *testing.T) {
	t.Parallel()
	server := startMemory(t)
	for line, want := range map[string]string{
		"GET /healthz/live": "live\n", "GET /healthz/ready": "ready\n", "HEAD /healthz/ready": "", "GET /": "<!doctype html>", "HEAD /": "",
		"GET /assets/main.js": "import", "GET /assets/none.js": "404", "GET /assets/": "404",
		"GET //api/v1/relayers": "", "POST /api/v1/../v1/relayers": "", "GET /healthz/": "", "POST /healthz/live": "", "POST /": "", "OPTIONS *": "",
		"CONNECT x:80": "", "GET /metrics": "", "HEAD /metrics": "", "DELETE /metrics": "", "GET /backup": "", "GET /./": "", "GET /assets": "", "GET /index.html": "",
	} {
		connection := mustGet(net.Dial("tcp", server.address()))(t)
		_, _ = fmt.Fprintf(connection, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line)
		method, path, _ := strings.Cut(line, " ")
		response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		body, _ := io.ReadAll(response.Body)
		connection.Close()
		status := http.StatusOK
		switch {
		case want == "404":
			status = http.StatusNotFound
		case want == "" && (method != "HEAD" || path == "/metrics"):
			status = http.StatusUnauthorized
			if method != "HEAD" && method != "CONNECT" {
				want = `"message":"Unauthorized"`
			}
		}
		if response.StatusCode != status || !strings.Contains(strings.ToLower(string(body)), strings.ToLower(want)) {
			t.Errorf("%s returned %d %.200s, want %d with %s", line, response.StatusCode, body, status, want)
		}
	}
	server.stop()
}

func expectReadiness(t *testing.T, readiness http.Handler, status int) {
	t.Helper()
	recorder := httptest.NewRecorder()
	readiness.ServeHTTP(recorder, httptest.NewRequest("GET", readinessPath, nil))
	if recorder.Code != status {
		t.Errorf("status %d %s, want %d", recorder.Code, recorder.Body, status)
	}
}

// askedStore counts how often it is asked.
type askedStore struct {
	asked int
	err   error
}

func (s *askedStore) Ready(context.Context) error {
	s.asked++
	return s.err
}

// Checks of the readiness need no token, so that they ask the store once in an interval.
func TestReadiness_Interval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(askedStore)
		ctx, stop := context.WithCancel(t.Context())
		ready := readiness(ctx, store)
		for i, c := range []struct {
			err         error
			sleep       time.Duration
			want, asked int
		}{
			{nil, 0, http.StatusOK, 1},
			{relayer.ErrUnavailable, 0, http.StatusOK, 1},
			{relayer.ErrUnavailable, probeInterval, http.StatusServiceUnavailable, 2},
			{nil, probeInterval, http.StatusOK, 3},
		} {
			store.err = c.err
			time.Sleep(c.sleep)
			expectReadiness(t, ready, c.want)
			expectReadiness(t, ready, c.want)
			if store.asked != c.asked {
				t.Errorf("step %d: asked %d times, want %d", i, store.asked, c.asked)
			}
		}
		stop()
		expectReadiness(t, ready, http.StatusServiceUnavailable)
	})
}

// A store that cannot take writes is not ready, as after a careless restore.
func TestReadiness_FileRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := mustGet(bolt.Open(t.Context(), path))(t)
	defer store.Close()
	expectReadiness(t, readiness(t.Context(), store), http.StatusOK)
	must(t, os.Remove(path))
	expectReadiness(t, readiness(t.Context(), store), http.StatusServiceUnavailable)
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	server := startMemory(t)
	_, port, _ := net.SplitHostPort(server.address())
	for _, name := range []string{server.address(), "localhost:" + port, ":" + port} {
		command := program("", "healthcheck", "--addr", name)
		// A proxy of the environment is not used.
		command.Env = append(command.Env, "http_proxy=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1")
		if done := finish(t, "", command); done.status != 0 || done.stdout+done.stderr != "ready\n" {
			t.Errorf("--addr %s: %+v", name, done)
		}
	}
	expectFailure(t, "first record does not look like a TLS handshake: the server has no HTTPS: use http, and healthcheck without --tls", "healthcheck", "--addr", server.address(), "--tls")
	server.stop()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusFound, http.StatusNoContent} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz/ready" {
				t.Errorf("request %s", r.URL)
			}
			w.Header().Set("Location", "/healthz/live")
			w.WriteHeader(status)
		}))
		expectFailure(t, fmt.Sprint(" is not ready: status ", status), "healthcheck", "--addr", other.Listener.Addr().String())
		other.Close()
	}
	listener := mustGet(net.Listen("tcp", "127.0.0.1:0"))(t) // accepts, and does not respond
	defer listener.Close()
	expectFailure(t, "is not ready: context deadline exceeded", "healthcheck", "--addr", listener.Addr().String())
}
