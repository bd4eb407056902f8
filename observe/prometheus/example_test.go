package relayerprom_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-relayer/relayer"
	relayerprom "github.com/go-relayer/relayer/observe/prometheus"
	"github.com/go-relayer/relayer/store/memory"
)

// The host application serves its Prometheus registry, here at /metrics.
func ExampleNewObserver() {
	registry := client.NewRegistry()
	observer, err := relayerprom.NewObserver(registry)
	if err != nil {
		log.Fatal(err)
	}
	manager, err := relayer.New(memory.New(), relayer.WithObserver(observer))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	ctx := context.Background()
	manager.List(ctx, relayer.ListQuery{})
	manager.Get(ctx, "sepolia-1")
	manager.Get(ctx, "sepolia-2")

	server := httptest.NewServer(mux)
	defer server.Close()
	printCounted(server.URL + "/metrics")
	// Output:
	// relayer_operations_total{operation="get",outcome="not_found"} 2
	// relayer_operations_total{operation="list",outcome="ok"} 1
}

// printCounted prints the counters that are not zero.
func printCounted(url string) {
	response, err := http.Get(url)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "relayer_operations_total") && !strings.HasSuffix(line, " 0") {
			fmt.Println(line)
		}
	}
}

// A label separates the counts of several Managers.
func ExampleNewObserver_severalManagers() {
	registry := client.NewRegistry()
	for _, name := range []string{"live", "trial"} {
		labeled := client.WrapRegistererWith(client.Labels{"registry": name}, registry)
		observer, err := relayerprom.NewObserver(labeled)
		if err != nil {
			log.Fatal(err)
		}
		manager, err := relayer.New(memory.New(), relayer.WithObserver(observer))
		if err != nil {
			log.Fatal(err)
		}
		manager.List(context.Background(), relayer.ListQuery{})
	}

	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	printCounted(server.URL)
	// Output:
	// relayer_operations_total{operation="list",outcome="ok",registry="live"} 1
	// relayer_operations_total{operation="list",outcome="ok",registry="trial"} 1
}
