//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

const (
	benchClients = 64
	clientBuffer = 64 << 10
)

// With -short the benchmarks only show that they run.
var benchRelayers = flag.Int("relayers", 100_000, "the number of relayers that the benchmarks of HTTP serve")

// BenchmarkHTTP compares the server with a bare net/http server that has the same time
// limits and writes the same status, headers and body. Both share the process with the
// clients and are measured alternately in short rounds, because the load of the machine
// changes from second to second. cpu-of-bare compares the time on a processor: it is the
// median of the rounds.
func BenchmarkHTTP(b *testing.B) {
	if testing.Short() {
		*benchRelayers = 2_000
	}
	seed := filepath.Join(b.TempDir(), "seed.db")
	ids := writeSeed(b, seed, *benchRelayers)
	for name, locate := range map[string]func(b *testing.B) (url string){
		"bolt": func(b *testing.B) string { return filepath.Join(b.TempDir(), "relayers.db") },
		"postgres": func(b *testing.B) string {
			if err := pgserver.Available(); err != nil {
				b.Skip(err)
			}
			return pgserver.Start(b).ConnString()
		},
	} {
		b.Run(name, func(b *testing.B) {
			all := operations(ids)
			ours := connect(b, serveCopy(b, seed, locate(b)), all[0].append)
			// Every relayer is read once: the system maps a page on the first touch.
			ours.load(b, *benchRelayers/50, walk(*benchRelayers))
			commits := openSyncedFile(b)
			for _, operation := range all {
				b.Run(operation.name, func(b *testing.B) { benchmarkOperation(b, ours, operation, commits) })
			}
		})
	}
}

// operation is a kind of request.
type operation struct {
	name   string
	append requester
}

// requester appends a request to a buffer.
type requester func(buffer []byte, random *rand.Rand) []byte

func operations(ids []string) []operation {
	page := func(size int) requester {
		return func(buffer []byte, random *rand.Rand) []byte {
			target := fmt.Sprintf("?page=%d&per_page=%d", 1+random.IntN(max(1, len(ids)/size)), size)
			return appendRequest(buffer, http.MethodGet, target, "")
		}
	}
	anyID := func(random *rand.Rand) string { return "/" + ids[random.IntN(len(ids))] }
	return []operation{
		{name: "get", append: func(buffer []byte, random *rand.Rand) []byte {
			return appendRequest(buffer, http.MethodGet, anyID(random), "")
		}},
		{name: "list-10", append: page(10)},
		{name: "list-100", append: page(100)},
		{name: "patch", append: func(buffer []byte, random *rand.Rand) []byte {
			patch := fmt.Sprintf(`{"name":"Sepolia relayer %09d"}`, random.IntN(1e9))
			return appendRequest(buffer, http.MethodPatch, anyID(random), patch)
		}},
		{name: "create", append: func(buffer []byte, _ *rand.Rand) []byte {
			return appendRequest(buffer, http.MethodPost, "", benchDefinition)
		}},
	}
}

// walk lists all relayers, 100 to a page, and starts again after the last page.
func walk(relayers int) requester {
	var number atomic.Int64
	pages := int64(relayers / 100)
	return func(buffer []byte, _ *rand.Rand) []byte {
		target := fmt.Sprintf("?per_page=100&page=%d", 1+number.Add(1)%pages)
		return appendRequest(buffer, http.MethodGet, target, "")
	}
}

func appendRequest(buffer []byte, method, target, body string) []byte {
	buffer = append(append(buffer, method...), ' ')
	buffer = append(append(buffer, collection...), target...)
	buffer = append(buffer, " HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer "+token+"\r\n"...)
	if body != "" {
		buffer = append(buffer, "Content-Type: application/json\r\nContent-Length: "...)
		buffer = append(strconv.AppendInt(buffer, int64(len(body)), 10), "\r\n"...)
	}
	return append(append(buffer, "\r\n"...), body...)
}

// benchDefinition describes a relayer of usual size.
const benchDefinition = `{"name":"Sepolia relayer 000000000","network":"sepolia","network_type":"evm","paused":false,` +
	`"signer_id":"local-signer","notification_id":"notification-example","custom_rpc_urls":[` +
	`{"url":"https://eth-sepolia.rpc-one.example/v2/8f14e45fceea167a5a36dedd4bea2543","weight":100},` +
	`{"url":"https://sepolia.rpc-two.example/0cc175b9c0f1b6a831c399e269772661","weight":50}],` +
	`"policies":{"eip1559_pricing":true,"gas_limit_estimation":true,"gas_price_cap":100000000000,` +
	`"include_revert_data":false,"min_balance":100000000000000000,"private_transactions":false,` +
	`"whitelist_receivers":["0x52908400098527886e0f7030069857d2e4169ee7","0x8617e340b3d01fa5f11f306f4090fd50e238070d"]}}`

// writeSeed writes a file with n relayers and returns their IDs, which are like generated
// ones. All relayers are alike, except for their IDs.
func writeSeed(b *testing.B, path string, n int) []string {
	b.Helper()
	origin := memory.New()
	manager := mustGet(relayer.New(origin))(b)
	first := mustGet(manager.Documents().Create(b.Context(), []byte(benchDefinition)))(b)
	model := mustGet(origin.Get(b.Context(), first.ID))(b)
	store := mustGet(bolt.Open(b.Context(), path))(b)
	ids, records := make([]string, n), make([]relayer.Record, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("01990000-%04x-7%03x-8000-%012x", i>>12, i&0xfff, uint64(i)*0x9e3779b97f4a7c15>>16)
		records[i] = model
		records[i].ID, records[i].Revision = ids[i], uint64(1+i)
		records[i].Document = bytes.Replace(model.Document, []byte(model.ID), []byte(ids[i]), 1)
	}
	for batch := range slices.Chunk(records, 2_000) {
		must(b, store.Import(b.Context(), batch))
	}
	must(b, store.Close())
	return ids
}

// serveCopy serves a copy of a file in another database.
func serveCopy(b *testing.B, seed, url string) (address string) {
	b.Helper()
	if status := execute(b.Context(), []string{"copy", "--from", seed, "--to", url}, "", strings.NewReader(""), io.Discard, io.Discard); status != 0 {
		b.Fatalf("status %d", status)
	}
	return serveInside(b, url)
}

// serveInside runs the server in this process, without its limit on the rate of reads,
// and returns its address.
func serveInside(b *testing.B, database string) (address string) {
	b.Helper()
	c := config{database: database, address: "127.0.0.1:0", logFormat: "text", history: defaultHistory}
	ctx, stop := context.WithCancel(context.Background())
	ended, log := make(chan error, 1), new(output)
	go func() { ended <- serve(ctx, c, token, io.Discard, log) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	for {
		if found := listening.FindStringSubmatch(log.String()); found != nil {
			return found[1]
		}
		select {
		case err := <-ended:
			ended <- err
			b.Fatalf("the server does not serve: %v %s", err, log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const requestsOfRound = 64 * benchClients

// benchmarkOperation measures an operation of the bare server and of ours alternately.
func benchmarkOperation(b *testing.B, ours *clients, op operation, commits *syncedFile) {
	bare := connect(b, serveBare(b, ours.exchange(b, op.append), commits), op.append)
	var took, ratios []float64
	round := func(clients *clients) (took, cpu float64) {
		used, start := processTime(b), time.Now()
		clients.load(b, requestsOfRound, op.append)
		return float64(time.Since(start)), float64(processTime(b) - used)
	}
	for _, clients := range []*clients{bare, ours} {
		clients.load(b, requestsOfRound/8, op.append)
	}
	for b.Loop() {
		_, bareCPU := round(bare)
		ourTime, ourCPU := round(ours)
		took, ratios = append(took, ourTime), append(ratios, bareCPU/ourCPU)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "cpu-of-bare")
	b.ReportMetric(1e9*requestsOfRound/median(took), "req/s")
}

// processTime returns how long the process was on a processor.
func processTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// bareBytes is the total size of the bodies that a bare server chooses from. It is more
// than the caches of the processor hold.
const bareBytes = 128 << 20

// serveBare runs a server that sends a copy of the sample to every request, and returns its
// address. It has many copies of the body, so that it reads from memory what it sends, as
// a server with many relayers does. For a write it reads and commits the body of the
// request first.
func serveBare(b *testing.B, sample message, commits *syncedFile) (address string) {
	b.Helper()
	var names []string
	var values [][]string
	for name, value := range sample.header {
		names, values = append(names, name), append(values, value)
	}
	bodies := make([][]byte, bareBytes/len(sample.body))
	for i := range bodies {
		bodies[i] = bytes.Clone(sample.body)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = commits.append(body)
			}
			if err != nil {
				b.Error(err)
			}
		}
		header := w.Header()
		for i, name := range names {
			header[name] = values[i]
		}
		w.WriteHeader(sample.status)
		_, _ = w.Write(bodies[rand.IntN(len(bodies))])
	})
	listener := mustGet(net.Listen("tcp", "127.0.0.1:0"))(b)
	server := newServer(handler, slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// syncedFile is a file that concurrent appends share a sync of.
type syncedFile struct{ waiting chan pendingAppend }

type pendingAppend struct {
	body []byte
	done chan error
}

func openSyncedFile(b *testing.B) *syncedFile {
	file := mustGet(os.Create(filepath.Join(b.TempDir(), "bare")))(b)
	f := &syncedFile{make(chan pendingAppend, 1024)}
	var writing sync.WaitGroup
	writing.Go(func() {
		for first := range f.waiting {
			batch, content := []pendingAppend{first}, slices.Clone(first.body)
			for range len(f.waiting) {
				next := <-f.waiting
				batch, content = append(batch, next), append(content, next.body...)
			}
			_, err := file.Write(content)
			if err == nil {
				err = file.Sync()
			}
			for _, one := range batch {
				one.done <- err
			}
		}
	})
	b.Cleanup(func() {
		close(f.waiting)
		writing.Wait()
		_ = file.Close()
	})
	return f
}

func (f *syncedFile) append(body []byte) error {
	one := pendingAppend{body, make(chan error, 1)}
	f.waiting <- one
	return <-one.done
}

// clients holds open connections to a server.
type clients []*connection

// connection is a minimal client, because client and server share the machine.
type connection struct {
	net.Conn
	reader  *bufio.Reader
	random  *rand.Rand
	request []byte
}

// connect sends a request on each connection at once: the server closes one that sends
// none.
func connect(b *testing.B, address string, request requester) *clients {
	b.Helper()
	all := make(clients, benchClients)
	for i := range all {
		all[i] = dial(b, address)
	}
	all.load(b, benchClients, request)
	return &all
}

func dial(b *testing.B, address string) *connection {
	b.Helper()
	conn := mustGet(net.Dial("tcp", address))(b)
	b.Cleanup(func() { _ = conn.Close() })
	return &connection{Conn: conn, reader: bufio.NewReaderSize(conn, clientBuffer), random: rand.New(rand.NewPCG(rand.Uint64(), 1))}
}

// load sends requests from all clients concurrently.
func (c *clients) load(b *testing.B, requests int, request requester) {
	b.Helper()
	var running sync.WaitGroup
	failed := make(chan error, len(*c))
	for _, each := range *c {
		running.Go(func() {
			for range requests / len(*c) {
				if err := each.send(request); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	running.Wait()
	if len(failed) > 0 {
		b.Fatal(<-failed)
	}
}

func (c *connection) send(request requester) error {
	c.request = request(c.request[:0], c.random)
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	status, err := c.reader.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 20")) {
		return fmt.Errorf("status line %q", status)
	}
	size := 0
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == len("\r\n") {
			_, err := c.reader.Discard(size)
			return err
		}
		if length, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			for _, digit := range bytes.TrimSpace(length) {
				size = 10*size + int(digit-'0')
			}
		}
	}
}

// message is a response.
type message struct {
	status int
	header http.Header
	body   []byte
}

// exchange sends a request from one client and returns the response.
func (c *clients) exchange(b *testing.B, request requester) message {
	b.Helper()
	one := (*c)[0]
	if _, err := one.Write(request(nil, one.random)); err != nil {
		b.Fatal(err)
	}
	response := mustGet(http.ReadResponse(one.reader, nil))(b)
	body := mustGet(io.ReadAll(response.Body))(b)
	response.Header.Del("Date") // net/http sets it
	return message{response.StatusCode, response.Header, body}
}
