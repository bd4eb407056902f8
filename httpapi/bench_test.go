package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

const benchClients = 64

// With -short the benchmarks only show that they run.
var benchRelayers = 100_000

// BenchmarkHTTP measures reads over loopback connections. It alternates with a bare
// net/http handler that writes the same number of constant bytes, and reports the
// request rate relative to that handler. The rounds are short, and the result is
// their median, because the load of the machine changes from second to second.
func BenchmarkHTTP(b *testing.B) {
	if testing.Short() {
		benchRelayers = 2_000
	}
	stores := map[string]func(*testing.B) relayer.Store{
		"memory": func(*testing.B) relayer.Store { return memory.New() },
		"bolt": func(b *testing.B) relayer.Store {
			store, err := bolt.Open(b.Context(), b.TempDir()+"/relayers.db")
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := store.Close(); err != nil {
					b.Error(err)
				}
			})
			return store
		},
	}
	for _, name := range []string{"memory", "bolt"} {
		b.Run(name, func(b *testing.B) {
			manager, err := relayer.New(stores[name](b))
			if err != nil {
				b.Fatal(err)
			}
			fill(b, manager)
			handler, err := httpapi.New(manager, httpapi.Tokens(validToken), httpapi.WithoutRateLimit())
			if err != nil {
				b.Fatal(err)
			}
			for _, target := range []struct{ name, path string }{
				{"get", collection + "/r-" + strconv.Itoa(benchRelayers/2)},
				{"list-10", collection + "?page=" + strconv.Itoa(benchRelayers/20)},
				{"list-100", collection + "?per_page=100&page=" + strconv.Itoa(benchRelayers/200)},
			} {
				b.Run(target.name, func(b *testing.B) { benchmarkRatio(b, handler, target.path) })
			}
		})
	}
}

// fill creates the relayers that the benchmark reads, concurrently, so that a
// durable store can use group commit.
func fill(b *testing.B, manager *relayer.Manager) {
	var creators sync.WaitGroup
	for c := range benchClients {
		creators.Go(func() {
			for i := c; i < benchRelayers; i += benchClients {
				_, err := manager.Create(context.Background(), relayer.CreateRequest{
					ID: "r-" + strconv.Itoa(i), Name: "Sepolia Example", Network: "sepolia", NetworkType: relayer.EVM,
					SignerID: "local-signer", NotificationID: "notification-example",
					CustomRPCURLs: []relayer.RPCConfig{{URL: "https://rpc.example/v2/key"}},
					Policies:      &relayer.EVMPolicy{MinBalance: new(relayer.NewAmount(0)), EIP1559Pricing: new(true)},
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	creators.Wait()
}

func benchmarkRatio(b *testing.B, handler http.Handler, path string) {
	ours := startServer(b, handler)
	ours.load(b, path, benchClients)
	size, err := ours.clients[0].get(benchRequest(path))
	if err != nil {
		b.Fatal(err)
	}
	constant := make([]byte, size)
	length := strconv.Itoa(size)
	bare := startServer(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(constant)
	}))
	bare.load(b, path, benchClients)

	const requests = 4096
	var ratios []float64
	var oursTime, bareTime time.Duration
	var oursAllocs, bareAllocs uint64
	for b.Loop() {
		start := mallocs()
		bareDuration := bare.load(b, path, requests)
		between := mallocs()
		oursDuration := ours.load(b, path, requests)
		bareAllocs += between - start
		oursAllocs += mallocs() - between
		bareTime += bareDuration
		oursTime += oursDuration
		ratios = append(ratios, float64(bareDuration)/float64(oursDuration))
	}
	slices.Sort(ratios)
	rounds := float64(len(ratios))
	b.ReportMetric(ratios[len(ratios)/2], "of-bare")
	b.ReportMetric(rounds*requests/oursTime.Seconds(), "req/s")
	b.ReportMetric(rounds*requests/bareTime.Seconds(), "bare-req/s")
	b.ReportMetric(float64(oursAllocs)/(rounds*requests), "allocs/req")
	b.ReportMetric(float64(bareAllocs)/(rounds*requests), "bare-allocs/req")
	b.ReportMetric(float64(size), "body-bytes")
	b.ReportMetric(0, "ns/op")
}

// mallocs returns the number of objects allocated so far. The clients share the
// process and allocate next to nothing.
func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// benchServer is a server with benchClients open connections.
type benchServer struct {
	clients []*benchClient
}

func startServer(b *testing.B, handler http.Handler) *benchServer {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	s := new(benchServer)
	for range benchClients {
		connection, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = connection.Close() })
		s.clients = append(s.clients, &benchClient{connection, bufio.NewReaderSize(connection, 64<<10)})
	}
	return s
}

// load sends the number of requests from all clients concurrently and returns the
// duration.
func (s *benchServer) load(b *testing.B, path string, requests int) time.Duration {
	var clients sync.WaitGroup
	request := benchRequest(path)
	start := time.Now()
	for _, client := range s.clients {
		clients.Go(func() {
			for range requests / len(s.clients) {
				if _, err := client.get(request); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return time.Since(start)
}

func benchRequest(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer " + validToken + "\r\n\r\n")
}

// benchClient is a minimal client, because client and server share the machine.
type benchClient struct {
	connection net.Conn
	reader     *bufio.Reader
}

// get sends a request and returns the size of the response body.
func (c *benchClient) get(request []byte) (size int, err error) {
	if _, err := c.connection.Write(request); err != nil {
		return 0, err
	}
	status, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) {
		return 0, fmt.Errorf("status line %q", status)
	}
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) == len("\r\n") {
			_, err := c.reader.Discard(size)
			return size, err
		}
		if length, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			size = 0
			for _, digit := range bytes.TrimSpace(length) {
				size = 10*size + int(digit-'0')
			}
		}
	}
}
