//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
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
// changes from second to second. The minimal server shows which ratio a registry can reach.
// Ratios are medians of the rounds: of-bare compares the rates of requests, and cpu-of-bare
// the time on a processor.
func BenchmarkHTTP(b *testing.B) {
	if testing.Short() {
		*benchRelayers = 2_000
	}
	seed := filepath.Join(b.TempDir(), "seed.db")
	ids := writeSeed(b, seed, *benchRelayers, benchDefinition)
	databases := []struct {
		name  string
		serve func(b *testing.B) (address string)
	}{
		{"memory", func(b *testing.B) string { return serveMemory(b, config{}, ids, benchDefinition) }},
		{"bolt", func(b *testing.B) string { return serveCopy(b, seed, filepath.Join(b.TempDir(), "relayers.db")) }},
		{"postgres", func(b *testing.B) string {
			if err := pgserver.Available(); err != nil {
				b.Skip(err)
			}
			return serveCopy(b, seed, pgserver.Start(b).ConnString())
		}},
	}
	for _, database := range databases {
		b.Run(database.name, func(b *testing.B) {
			all := operations(ids, benchDefinition)
			ours := connect(b, database.serve(b), all[0].append)
			// Every relayer is read once: the system maps a page on the first touch.
			ours.load(b, *benchRelayers/50, walk(*benchRelayers))
			var commits *syncedFile
			if database.name != inMemory {
				commits = openSyncedFile(b)
			}
			for _, operation := range all {
				b.Run(operation.name, func(b *testing.B) { benchmarkOperation(b, ours, operation, commits) })
			}
		})
	}
	b.Run("minimal", func(b *testing.B) {
		reads := operations(ids, benchDefinition)[:3] // get, list-10, list-100
		minimal := connect(b, serveMinimal(b, ids), reads[0].append)
		for _, operation := range reads {
			b.Run(operation.name, func(b *testing.B) { benchmarkOperation(b, minimal, operation, nil) })
		}
	})
}

// operation is a kind of request.
type operation struct {
	name   string
	append requester

	// baseline is another request that is measured in the same rounds.
	baseline requester
}

// requester appends a request to a buffer.
type requester func(buffer []byte, random *rand.Rand) []byte

func operations(ids []string, definition string) []operation {
	page := func(size int, number func(pages int, random *rand.Rand) int) requester {
		pages := max(1, len(ids)/size)
		return func(buffer []byte, random *rand.Rand) []byte {
			target := fmt.Appendf(nil, "?page=%d&per_page=%d", number(pages, random), size)
			return appendRequest(buffer, http.MethodGet, string(target), "")
		}
	}
	anyPage := func(pages int, random *rand.Rand) int { return 1 + random.IntN(pages) }
	firstPage := func(int, *rand.Rand) int { return 1 }
	lastPage := func(pages int, _ *rand.Rand) int { return pages }
	anyID := func(random *rand.Rand) string { return "/" + ids[random.IntN(len(ids))] }
	return []operation{
		{name: "get", append: func(buffer []byte, random *rand.Rand) []byte {
			return appendRequest(buffer, http.MethodGet, anyID(random), "")
		}},
		{name: "list-10", append: page(10, anyPage)},
		{name: "list-100", append: page(100, anyPage)},
		{name: "last-10", append: page(10, lastPage), baseline: page(10, firstPage)},
		{name: "patch", append: func(buffer []byte, random *rand.Rand) []byte {
			patch := fmt.Sprintf(`{"name":"Sepolia relayer %09d"}`, random.IntN(1e9))
			return appendRequest(buffer, http.MethodPatch, anyID(random), patch)
		}},
		{name: "create", append: func(buffer []byte, _ *rand.Rand) []byte {
			return appendRequest(buffer, http.MethodPost, "", definition)
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
func writeSeed(b *testing.B, path string, n int, definition string) (ids []string) {
	b.Helper()
	origin := memory.New()
	manager, err := relayer.New(origin)
	if err != nil {
		b.Fatal(err)
	}
	first, err := manager.Documents().Create(b.Context(), []byte(definition))
	if err != nil {
		b.Fatal(err)
	}
	model, err := origin.Get(b.Context(), first.ID)
	if err != nil {
		b.Fatal(err)
	}
	store, err := bolt.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	var records []relayer.Record
	ids = seedIDs(n)
	for i, id := range ids {
		rec := model
		rec.ID, rec.Revision = id, uint64(1+i)
		rec.Document = bytes.Replace(model.Document, []byte(model.ID), []byte(rec.ID), 1)
		records = append(records, rec)
		if len(records) < 2_000 && i+1 < n {
			continue
		}
		if err := store.Import(b.Context(), records); err != nil {
			b.Fatal(err)
		}
		records = records[:0]
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	return ids
}

// seedIDs returns IDs like those that the server generates.
func seedIDs(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("01990000-%04x-7%03x-8000-%012x", i>>12, i&0xfff, uint64(i)*0x9e3779b97f4a7c15>>16))
	}
	return ids
}

// serveCopy serves a copy of a file in another database.
func serveCopy(b *testing.B, seed, url string) (address string) {
	b.Helper()
	if err := run(b.Context(), []string{"copy", "--from", seed, "--to", url}, "", strings.NewReader(""), io.Discard, io.Discard); err != nil {
		b.Fatal(err)
	}
	return serveInside(b, config{database: url})
}

// serveMemory serves new relayers with the IDs, which are stored in memory.
func serveMemory(b *testing.B, c config, ids []string, definition string) (address string) {
	b.Helper()
	c.database = inMemory
	address = serveInside(b, c)
	var next atomic.Int64
	create := func(buffer []byte, _ *rand.Rand) []byte {
		i := int(next.Add(1)) - 1
		if i >= len(ids) {
			return appendRequest(buffer, http.MethodGet, "?per_page=0", "")
		}
		return appendRequest(buffer, http.MethodPost, "", strings.Replace(definition, "{", `{"id":"`+ids[i]+`",`, 1))
	}
	connect(b, address, create).load(b, len(ids), create)
	return address
}

// serveInside runs the server in this process, without its limit on the rate of reads,
// and returns its address.
func serveInside(b *testing.B, c config) (address string) {
	b.Helper()
	c.address, c.logFormat, c.history = "127.0.0.1:0", "text", defaultHistory
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

// benchmarkOperation measures an operation, and its baseline if it has one.
func benchmarkOperation(b *testing.B, ours *clients, op operation, commits *syncedFile) {
	sample := ours.exchange(b, op.append)
	bare := connect(b, serveBare(b, sample, commits), op.append)
	runs := []*candidate{{clients: bare, append: op.append}, {clients: ours, append: op.append}}
	if op.baseline != nil {
		runs = append(runs, &candidate{clients: ours, append: op.baseline})
	}
	measure(b, runs)
	b.ReportMetric(ratio(runs[0].took, runs[1].took), "of-bare")
	b.ReportMetric(ratio(runs[0].cpu, runs[1].cpu), "cpu-of-bare")
	b.ReportMetric(1e9*requestsOfRound/median(runs[1].took), "req/s")
	b.ReportMetric(median(runs[1].objects)/requestsOfRound, "allocs/req")
	b.ReportMetric((median(runs[1].objects)-median(runs[0].objects))/requestsOfRound, "allocs-above-bare")
	b.ReportMetric(median(runs[1].bytes)/requestsOfRound, "B/req")
	b.ReportMetric((median(runs[1].bytes)-median(runs[0].bytes))/requestsOfRound, "B-above-bare")
	if op.baseline != nil {
		b.ReportMetric(ratio(runs[1].took, runs[2].took), "of-first")
	}
}

const requestsOfRound = 64 * benchClients

// measure runs the candidates alternately.
func measure(b *testing.B, runs []*candidate) {
	for _, r := range runs {
		r.clients.load(b, requestsOfRound/8, r.append)
	}
	for b.Loop() {
		for _, r := range runs {
			r.round(b, requestsOfRound)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSealing compares a server whose RPC URLs are sealed with one that has them in
// clear.
func BenchmarkSealing(b *testing.B) {
	if testing.Short() {
		*benchRelayers = 2_000
	}
	keys := sealing{keysFile: filepath.Join(b.TempDir(), "relayer.keys")}
	if err := keyring.AddKey(keys.keysFile, "k"); err != nil {
		b.Fatal(err)
	}
	ids := seedIDs(*benchRelayers)
	all := operations(ids, benchDefinition)
	inClear := connect(b, serveMemory(b, config{}, ids, benchDefinition), all[0].append)
	sealed := connect(b, serveMemory(b, config{sealing: keys}, ids, benchDefinition), all[0].append)
	for _, op := range all {
		compare(b, op.name, &candidate{clients: inClear, append: op.append}, &candidate{clients: sealed, append: op.append})
	}
}

// BenchmarkApply changes 10,000 relayers of a file with the command apply, directly and through
// a server. On two cores, 4 s and 6 s are enough.
func BenchmarkApply(b *testing.B) {
	changes := 10_000
	if testing.Short() {
		changes = 100
	}
	file := filepath.Join(b.TempDir(), "relayers.json")
	args := []string{"apply", "--yes", "--file", file, "--server", "http://" + serveInside(b, config{database: filepath.Join(b.TempDir(), "relayers.db")})}
	applyAll(b, file, changes, 0, args)
	for round := 1; b.Loop(); round++ {
		applyAll(b, file, changes, round, args)
	}
}

// applyAll runs apply for a file whose relayers are unlike those of other rounds.
func applyAll(b *testing.B, file string, changes, round int, args []string) {
	b.Helper()
	var definitions []string
	for _, id := range seedIDs(changes) {
		definitions = append(definitions, strings.Replace(benchDefinition, "{", fmt.Sprintf(`{"id":"%s","labels":{"round":"%d"},`, id, round), 1))
	}
	if err := os.WriteFile(file, []byte(`{"relayers":[`+strings.Join(definitions, ",")+`]}`), 0o600); err != nil {
		b.Fatal(err)
	}
	var stderr strings.Builder
	if status := execute(b.Context(), args, token, strings.NewReader(""), io.Discard, &stderr); status != 0 {
		b.Fatalf("status %d: %s", status, &stderr)
	}
}

// BenchmarkLabels compares a server whose relayers have five labels with one whose relayers
// have none.
func BenchmarkLabels(b *testing.B) {
	if testing.Short() {
		*benchRelayers = 2_000
	}
	serveAll := func(labels string) (*clients, []operation) {
		definition := strings.Replace(benchDefinition, "{", `{"labels":`+labels+",", 1)
		ids := seedIDs(*benchRelayers)
		all := operations(ids, definition)
		return connect(b, serveMemory(b, config{}, ids, definition), all[0].append), all
	}
	unlabeled, operations := serveAll(`{}`)
	labeled, labeledOperations := serveAll(`{"chain":"main","owner":"desk-7","region":"eu","stage":"prod","team":"payments"}`)
	for i, op := range operations {
		compare(b, op.name, &candidate{clients: unlabeled, append: op.append}, &candidate{clients: labeled, append: labeledOperations[i].append})
	}
}

// compare reports the time of the base divided by that of the other candidate.
func compare(b *testing.B, name string, base, other *candidate) {
	b.Run(name, func(b *testing.B) {
		measure(b, []*candidate{base, other})
		b.ReportMetric(ratio(base.took, other.took), "of-base")
		b.ReportMetric(ratio(base.cpu, other.cpu), "cpu-of-base")
	})
}

// candidate holds what its rounds used.
type candidate struct {
	clients *clients
	append  requester

	took, cpu, objects, bytes []float64
}

func (r *candidate) round(b *testing.B, requests int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := processTime(b), time.Now()
	r.clients.load(b, requests, r.append)
	r.took = append(r.took, float64(time.Since(start)))
	r.cpu = append(r.cpu, float64(processTime(b)-cpu))
	runtime.ReadMemStats(&after)
	r.objects = append(r.objects, float64(after.Mallocs-before.Mallocs))
	r.bytes = append(r.bytes, float64(after.TotalAlloc-before.TotalAlloc))
}

// processTime returns how long the process was on a processor.
func processTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// ratio returns the median of the ratios of rounds.
func ratio(numerators, denominators []float64) float64 {
	ratios := make([]float64, len(numerators))
	for i := range ratios {
		ratios[i] = numerators[i] / denominators[i]
	}
	return median(ratios)
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
// a server with many relayers does. For a write it reads the body of the request first
// and, if commits is not nil, commits it.
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
	return serveOnLoopback(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, err := io.ReadAll(r.Body)
			if err == nil && commits != nil {
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
	}))
}

// serveMinimal runs a server that does for a read only what every registry has to do, and
// returns its address: a mux, the digest of a token, a map and a list of documents under one
// lock, and one copy of each document. The ID, the document and the private part of a relayer
// are adjacent in memory, and have the sizes of those of benchDefinition. The content does not
// matter.
func serveMinimal(b *testing.B, ids []string) (address string) {
	b.Helper()
	const documentSize, privateSize = 700, 300
	documents, byID := make([]*string, len(ids)), make(map[string]*string, len(ids))
	for i, id := range ids {
		record := id + strings.Repeat("d", documentSize) + strings.Repeat("p", privateSize)
		document := record[len(id):][:documentSize]
		documents[i], byID[record[:len(id)]] = &document, &document
	}
	digest := sha256.Sum256([]byte("Bearer " + token))
	header := http.Header{
		"Cache-Control": {"no-store"}, "Content-Type": {"application/json"}, "X-Content-Type-Options": {"nosniff"},
		"Etag": {`"100000"`}, "X-Request-Id": {ids[0]},
	}
	var lock sync.RWMutex
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	respond := func(find func(*http.Request) []*string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if sha256.Sum256([]byte(r.Header.Get("Authorization"))) != digest {
				b.Error("the token is another one")
			}
			buffer := buffers.Get().(*[]byte)
			defer buffers.Put(buffer)
			body := append((*buffer)[:0], `{"success":true,"data":`...)
			lock.RLock()
			found := find(r)
			lock.RUnlock()
			for _, document := range found {
				body = append(append(body, *document...), ',')
			}
			*buffer = append(body, '}')
			maps.Copy(w.Header(), header)
			w.Header()["Content-Length"] = []string{strconv.Itoa(len(*buffer))}
			_, _ = w.Write(*buffer)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+collection, respond(func(r *http.Request) []*string {
		page, size, _ := strings.Cut(strings.TrimPrefix(r.URL.RawQuery, "page="), "&per_page=")
		number, _ := strconv.Atoi(page)
		count, _ := strconv.Atoi(size)
		return documents[(number-1)*count:][:count]
	}))
	mux.Handle("GET "+collection+"/{id}", respond(func(r *http.Request) []*string {
		return []*string{byID[r.PathValue("id")]}
	}))
	return serveOnLoopback(b, mux)
}

// serveOnLoopback runs a server with the time limits of relayerd.
func serveOnLoopback(b *testing.B, handler http.Handler) (address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
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
	file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
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
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
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
	response, err := http.ReadResponse(one.reader, nil)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	response.Header.Del("Date") // net/http sets it
	return message{response.StatusCode, response.Header, body}
}
