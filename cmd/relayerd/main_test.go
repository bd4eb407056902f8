package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// asServer makes the test binary run main instead of the tests, so that the tests
// have a real process with signals and an exit status.
const asServer = "RELAYER_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	token      = "test-token-0123456789"
	collection = "/api/v1/relayers"
)

// process is a running server.
type process struct {
	t       *testing.T
	command *exec.Cmd
	url     string
	output  *output
	reason  string // of the requests of status, if it is not empty
}

// output collects the output of a running process.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// skipUnlessCI skips a test that lacks something. In CI the test fails.
func skipUnlessCI(t *testing.T, missing error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// requireProgram returns the path of a program, or skips the test if it is not installed.
func requireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		skipUnlessCI(t, err)
	}
	return path
}

// await waits until a condition holds, and reports whether it did in time.
func await(condition func() bool) bool {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return condition()
}

// awaitText waits until the output contains a text count times.
func (o *output) awaitText(t *testing.T, text string, count int) {
	t.Helper()
	if !await(func() bool { return strings.Count(o.String(), text) >= count }) {
		t.Fatalf("the output does not contain %q %d times: %s", text, count, o)
	}
}

// program returns a process that runs this program with arguments. With -race, each would
// sleep for a second before it exits.
func program(apiKey string, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asServer+"=1", "API_KEY="+apiKey, "GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
	return command
}

// serverCommand has no drain delay unless the arguments have one.
func serverCommand(apiKey string, args ...string) *exec.Cmd {
	return program(apiKey, append([]string{"serve", "--drain-delay", "0"}, args...)...)
}

var listening = regexp.MustCompile(`msg=serving address=(\S+)`)

// start runs a server on a free port and waits until it serves.
func start(t *testing.T, apiKey string, args ...string) *process {
	t.Helper()
	for {
		p := &process{t: t, command: serverCommand(apiKey, append([]string{"--addr", "127.0.0.1:0"}, args...)...), output: new(output)}
		if p.run() {
			return p
		}
	}
}

// isLate reports whether a command has ended because its database did not respond in time, as
// it may on a busy machine.
func isLate(output string) bool {
	return strings.Contains(output, "store unavailable: no connection within")
}

// run starts the process and waits until it serves. It returns false if the start is to be
// repeated.
func (p *process) run() bool {
	p.t.Helper()
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.command.Process.Kill() })
	if !await(func() bool { return listening.MatchString(p.output.String()) || isLate(p.output.String()) }) {
		p.t.Fatalf("the server does not start: %s", p.output)
	}
	serving := listening.FindStringSubmatch(p.output.String())
	if serving == nil {
		return false
	}
	p.url = "http://" + serving[1]
	return true
}

// stop sends SIGTERM and checks that the server shuts down without an error.
func (p *process) stop() {
	p.t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		p.t.Fatalf("after SIGTERM: error %v: %s", err, p.output)
	}
	if !strings.Contains(p.output.String(), "msg=stopped") {
		p.t.Errorf("the log does not say that the server stopped: %s", p.output)
	}
}

func (p *process) do(method, path, body string) (status int, response string) {
	p.t.Helper()
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	received, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer received.Body.Close()
	content, err := io.ReadAll(received.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return received.StatusCode, string(content)
}

// realRelayers returns definitions from public deployments, byte by byte.
func realRelayers(t *testing.T) []json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("testdata/real-relayers.json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Relayer json.RawMessage `json:"relayer"`
	}
	if err := json.Unmarshal(data, &entries); err != nil {
		t.Fatal(err)
	}
	if len(entries) != 28 {
		t.Fatalf("%d definitions, want 28", len(entries))
	}
	var definitions []json.RawMessage
	for _, entry := range entries {
		definitions = append(definitions, entry.Relayer)
	}
	return definitions
}

func TestServe_RealRelayersAcrossRestart(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--network-rules"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			database := filepath.Join(t.TempDir(), "relayers.db")
			definitions := realRelayers(t)
			server := start(t, token, append(flags, "--db", database)...)

			documents := createAll(t, server, definitions)
			before := readAll(t, server, documents)
			server.stop()

			again := start(t, token, append(flags, "--db", database)...)
			after := readAll(t, again, documents)
			for path, body := range before {
				if after[path] != body {
					t.Errorf("%s returned\n%s\nand after a restart\n%s", path, body, after[path])
				}
			}
			again.stop()
		})
	}
}

// createAll creates relayers and returns their documents.
func createAll(t *testing.T, server *process, definitions []json.RawMessage) []string {
	t.Helper()
	var documents []string
	for _, definition := range definitions {
		status, body := server.do("POST", collection, string(definition))
		if status != http.StatusCreated {
			t.Fatalf("status %d to %s: %s", status, definition, body)
		}
		document := data(t, body)
		expectIntact(t, definition, document)
		documents = append(documents, string(document))
	}
	return documents
}

func data(t *testing.T, body string) json.RawMessage {
	t.Helper()
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &envelope); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return envelope.Data
}

// expectIntact checks that the response contains every member sent, at any depth,
// with the same value.
func expectIntact(t *testing.T, sent, received json.RawMessage) {
	t.Helper()
	if !contains(exactly(t, received), exactly(t, sent)) {
		t.Errorf("sent %s\ngot  %s", sent, received)
	}
}

// exactly decodes JSON without rounding a number.
func exactly(t *testing.T, data json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func contains(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && contains(object[name], value)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		ok = ok && len(list) == len(want)
		for i := range want {
			ok = ok && contains(list[i], want[i])
		}
		return ok
	default:
		return got == want
	}
}

// readAll reads every relayer and every page, checks that the pages contain the
// documents in creation order, and returns the response bodies by path.
func readAll(t *testing.T, server *process, documents []string) map[string]string {
	t.Helper()
	bodies := make(map[string]string)
	get := func(path string) json.RawMessage {
		status, body := server.do("GET", path, "")
		if status != http.StatusOK {
			t.Fatalf("%s returned %d: %s", path, status, body)
		}
		bodies[path] = body
		return data(t, body)
	}
	const perPage = 5
	var listed []string
	for page := 1; page <= (len(documents)+perPage-1)/perPage; page++ {
		var items []json.RawMessage
		if err := json.Unmarshal(get(fmt.Sprintf("%s?page=%d&per_page=%d", collection, page, perPage)), &items); err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			listed = append(listed, string(item))
		}
	}
	if strings.Join(listed, "\n") != strings.Join(documents, "\n") {
		t.Errorf("the pages contain\n%s\nbut created was\n%s", strings.Join(listed, "\n"), strings.Join(documents, "\n"))
	}
	for _, document := range documents {
		var member struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(document), &member); err != nil {
			t.Fatal(err)
		}
		if read := string(get(collection + "/" + member.ID)); read != document {
			t.Errorf("created %s\nread    %s", document, read)
		}
	}
	return bodies
}

func TestServe_MemoryWritesNoFile(t *testing.T) {
	definition := string(realRelayers(t)[0])
	directory := t.TempDir()
	t.Chdir(directory)
	server := start(t, token, "--db", "memory")
	if status, body := server.do("POST", collection, definition); status != http.StatusCreated {
		t.Fatalf("status %d: %s", status, body)
	}
	server.stop()
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 0 {
		t.Errorf("files %v, error %v", entries, err)
	}
}

func TestToken_OfEnvironmentIsNotPrinted(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--log-level", "debug")
	server.do("GET", collection, "")
	server.stop()
	if !strings.Contains(server.output.String(), "msg=request ") {
		t.Errorf("the request was not logged: %s", server.output)
	}
	if strings.Contains(server.output.String(), token) {
		t.Errorf("the token was printed: %s", server.output)
	}
}

const (
	evmAddress     = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
	stellarAddress = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
)

func TestSigners_Addresses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "signers.json")
	if err := os.WriteFile(file, []byte(`{"local":{"evm":"`+evmAddress+`","stellar":"`+stellarAddress+`"},"empty":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := start(t, token, "--db", "memory", "--signers", file)
	create := func(signer, networkType string) (int, string) {
		return server.do("POST", collection, fmt.Sprintf(
			`{"name":"n","network":"x","network_type":%q,"paused":false,"signer_id":%q}`, networkType, signer))
	}
	for networkType, address := range map[string]string{"evm": evmAddress, "stellar": stellarAddress} {
		status, body := create("local", networkType)
		if status != http.StatusCreated || !strings.Contains(body, `"address":"`+address+`"`) {
			t.Errorf("%s: returned %d %s", networkType, status, body)
		}
	}
	for _, signer := range [][2]string{{"local", "solana"}, {"empty", "evm"}, {"unknown", "evm"}} {
		status, body := create(signer[0], signer[1])
		if status != http.StatusBadRequest || !strings.Contains(body, `"field":"signer_id"`) {
			t.Errorf("%v: returned %d %s", signer, status, body)
		}
	}
	server.stop()
}

func TestNetworkRules_Flag(t *testing.T) {
	t.Parallel()
	body := `{"name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s","policies":{"whitelist_receivers":["not-an-address"]}}`
	for _, c := range []struct {
		flags []string
		want  int
	}{{nil, http.StatusCreated}, {[]string{"--network-rules"}, http.StatusBadRequest}} {
		server := start(t, token, append(c.flags, "--db", "memory")...)
		if status, response := server.do("POST", collection, body); status != c.want {
			t.Errorf("%v: returned %d, want %d: %s", c.flags, status, c.want, response)
		}
		server.stop()
	}
}

func TestExclusiveSigners_Flag(t *testing.T) {
	t.Parallel()
	const body = `{"name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`
	for _, c := range []struct {
		flags []string
		want  int
	}{{nil, http.StatusCreated}, {[]string{"--exclusive-signers"}, http.StatusBadRequest}} {
		database := filepath.Join(t.TempDir(), "relayers.db")
		for range 2 { // claims survive a restart
			server := start(t, token, append(c.flags, "--db", database)...)
			server.do("POST", collection, body)
			if status, response := server.do("POST", collection, body); status != c.want {
				t.Errorf("%v: returned %d, want %d: %s", c.flags, status, c.want, response)
			}
			server.stop()
		}
	}
}

// Each change of a relayer survives a restart.
func TestServe_LifeCycleAcrossRestart(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database)
	definition := realRelayers(t)[0]
	if status, body := server.do("POST", collection, string(definition)); status != http.StatusCreated {
		t.Fatalf("status %d: %s", status, body)
	}
	_, patched := server.do("PATCH", collection+"/sepolia-example", `{"paused":true,"policies":{"gas_price_cap":1e21}}`)
	server.stop()

	server = start(t, token, "--db", database)
	if _, body := server.do("GET", collection+"/sepolia-example", ""); body != patched || !strings.Contains(body, `"gas_price_cap":1000000000000000000000`) {
		t.Errorf("patched %s\nread    %s", patched, body)
	}
	if status, body := server.do("DELETE", collection+"/sepolia-example", ""); status != http.StatusOK {
		t.Errorf("status %d: %s", status, body)
	}
	server.stop()

	server = start(t, token, "--db", database)
	if status, _ := server.do("GET", collection+"/sepolia-example", ""); status != http.StatusNotFound {
		t.Errorf("get of the deleted relayer returned %d", status)
	}
	server.stop()
}

func TestHealth_WithoutToken(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	for path, want := range map[string]string{"/healthz/live": "live\n", "/healthz/ready": "ready\n"} {
		response, err := http.Get(server.url + path) // without a token
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || string(body) != want {
			t.Errorf("%s returned %d %q, %v", path, response.StatusCode, body, err)
		}
	}
	server.stop()
}

// Unusual requests without a token get 401 in JSON, as all others do.
func TestSite_UnusualRequests(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	for _, line := range []string{
		"GET //api/v1/relayers", "POST /api/v1/../v1/relayers", "GET /healthz/", "GET /healthz/live/", "POST /healthz/live", "POST /", "OPTIONS *",
		"CONNECT x:80", "GET /metrics", "HEAD /metrics", "GET /metrics/x", "DELETE /metrics", "GET /./",
	} {
		connection, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(connection, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line)
		method, _, _ := strings.Cut(line, " ")
		response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		body, _ := io.ReadAll(response.Body)
		connection.Close()
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), `"message":"Unauthorized"`) && method != "CONNECT" && method != "HEAD" {
			t.Errorf("%s returned %d %s", line, response.StatusCode, body)
		}
	}
	server.stop()
}

func TestMetrics_Operations(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	server.do("POST", collection, string(realRelayers(t)[0]))
	server.do("GET", collection+"/absent-id", "")
	server.do("GET", collection, "")
	_, body := server.do("GET", "/metrics", "")
	for _, want := range []string{
		"# TYPE relayer_operations_total counter\n",
		`relayer_operations_total{operation="create",outcome="ok"} 1` + "\n",
		`relayer_operations_total{operation="get",outcome="not_found"} 1` + "\n",
		"# TYPE relayer_operation_duration_seconds histogram\n",
		`relayer_operation_duration_seconds_bucket{operation="list",le="+Inf"} 1` + "\n",
		`relayer_operation_duration_seconds_count{operation="list"} 1` + "\n",
		`relayer_operations_total{operation="list",outcome="unavailable"} 0` + "\n",
		"# TYPE go_goroutines gauge\n",
		"# TYPE process_start_time_seconds gauge\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%s", want, body)
		}
	}
	for line := range strings.Lines(body) {
		if strings.Contains(line, "absent-id") || strings.Contains(line, "sepolia") {
			t.Errorf("the metrics contain an ID: %s", line)
		}
	}
	server.stop()
}

func TestReadiness_StoppingOrClosedStore(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	expect := func(status int, text string) {
		t.Helper()
		site := newSite(ctx, http.NotFoundHandler(), store, map[string]http.Handler{})
		recorder := httptest.NewRecorder()
		site.ServeHTTP(recorder, httptest.NewRequest("GET", "/healthz/ready", nil))
		if recorder.Code != status || recorder.Body.String() != text+"\n" {
			t.Errorf("status %d %q, want %d %q", recorder.Code, recorder.Body, status, text)
		}
	}
	expect(http.StatusOK, "ready")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	expect(http.StatusServiceUnavailable, "store unavailable")
	stop()
	expect(http.StatusServiceUnavailable, "stopping")
}

// Checks of the readiness need no token, so that they must not load the database.
func TestReadiness_AsksOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &askedStore{Store: memory.New()}
		site := newSite(t.Context(), http.NotFoundHandler(), store, map[string]http.Handler{})
		expect := func(status, asked int) {
			t.Helper()
			for range 3 {
				recorder := httptest.NewRecorder()
				site.ServeHTTP(recorder, httptest.NewRequest("GET", readinessPath, nil))
				if recorder.Code != status || store.asked != asked {
					t.Errorf("status %d after %d lists, want %d after %d", recorder.Code, store.asked, status, asked)
				}
			}
		}
		expect(http.StatusOK, 1)
		store.err = relayer.ErrUnavailable
		expect(http.StatusOK, 1)
		time.Sleep(probeInterval)
		expect(http.StatusServiceUnavailable, 2)
		store.err = nil
		time.Sleep(probeInterval)
		expect(http.StatusOK, 3)
	})
}

// Without the store there are no numbers, and it is not asked again at each scrape.
func TestRelayersMetric_StoreFails(t *testing.T) {
	store := &askedStore{Store: memory.New(), err: relayer.ErrUnavailable}
	metric, err := newRelayersMetric(store)
	if err != nil {
		t.Fatal(err)
	}
	registry := promclient.NewPedanticRegistry()
	registry.MustRegister(metric)
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			if families, err := registry.Gather(); err != nil || len(families) != 0 || store.asked != 1 {
				t.Errorf("%v after %d lists, error %v", families, store.asked, err)
			}
		}
	})
}

type askedStore struct {
	relayer.Store
	asked int
	err   error
}

func (s *askedStore) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.asked++
	listing, err := s.Store.List(ctx, query)
	return listing, cmp.Or(s.err, err)
}

// The file is removed while the server runs, as by a careless restore.
func TestReadiness_FileReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	site := newSite(t.Context(), http.NotFoundHandler(), store, map[string]http.Handler{})
	site.ServeHTTP(recorder, httptest.NewRequest("GET", "/healthz/ready", nil))
	if recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("status is %d with the file removed, want 503", recorder.Code)
	}
}

func TestWarning_SharedDatabaseFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	for _, test := range []struct {
		mode os.FileMode
		want bool
	}{{0o600, false}, {0o644, true}, {0o640, false}} {
		if err := errors.Join(os.WriteFile(path, nil, test.mode), os.Chmod(path, test.mode)); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		warnIfReadable(slog.New(slog.NewTextHandler(&log, nil)), "database file", path)
		if got := strings.Contains(log.String(), "other users can read"); got != test.want {
			t.Errorf("mode %o: the log is %q", test.mode, log.String())
		}
	}
}

func TestRate_Flag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate string
		want int // of 20 requests at once
	}{{"0.1", 1}, {"1", 3}, {"0", 20}, {"2147483647", 20}} {
		server := start(t, token, "--db", "memory", "--rate", c.rate)
		began, accepted := time.Now(), 0
		for range 20 {
			if status, _ := server.do("GET", collection, ""); status == http.StatusOK {
				accepted++
			}
		}
		// The rate allows more requests while a slow machine sends.
		earned := int(time.Since(began).Seconds()) + 1
		if accepted < c.want || accepted > c.want+earned {
			t.Errorf("--rate %s: %d requests accepted, want %d", c.rate, accepted, c.want)
		}
		server.stop()
	}
}

// A request that is running when SIGTERM arrives gets its response, and is stored.
func TestServe_SIGTERMDrainsRequests(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database)
	reader, writer := io.Pipe()
	request, err := http.NewRequest("POST", server.url+collection, reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	// The client sends the body after the server asks for it. So the request is
	// running when the first bytes are sent.
	request.Header.Set("Expect", "100-continue")
	client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	statuses := make(chan int, 1)
	go func() {
		response, err := client.Do(request)
		if err != nil {
			statuses <- 0
			return
		}
		response.Body.Close()
		statuses <- response.StatusCode
	}()
	definition := realRelayers(t)[0]
	if _, err := writer.Write(definition[:10]); err != nil {
		t.Fatal(err)
	}
	if err := server.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, "msg=stopping", 1)
	if _, err := writer.Write(definition[10:]); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if status := <-statuses; status != http.StatusCreated {
		t.Errorf("the running request returned %d", status)
	}
	if err := server.command.Wait(); err != nil {
		t.Errorf("after SIGTERM: error %v: %s", err, server.output)
	}
	again := start(t, token, "--db", database)
	if status, _ := again.do("GET", collection+"/sepolia-example", ""); status != http.StatusOK {
		t.Errorf("get of the relayer created during shutdown returned %d", status)
	}
	again.stop()
}

// Under load, SIGTERM loses no request that the server has read: what is stored was
// acknowledged, and the reverse.
func TestServe_SIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database)
	var acknowledged sync.Map
	var clients sync.WaitGroup
	var count atomic.Int64
	for client := range 32 {
		// Half of the clients open a connection for each request.
		transport := &http.Transport{DisableKeepAlives: client%2 == 0}
		defer transport.CloseIdleConnections()
		clients.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("r-%d-%d", client, i)
				status, err := server.statusWith(&http.Client{Transport: transport}, "POST", collection, token, strings.Replace(definition, "r-1", id, 1))
				if err != nil {
					return
				}
				if status != http.StatusCreated {
					t.Errorf("create of %s returned %d", id, status)
				}
				acknowledged.Store(id, true)
				count.Add(1)
			}
		})
	}
	if !await(func() bool { return count.Load() > 500 }) {
		t.Fatalf("only %d creates: %s", count.Load(), server.output)
	}
	server.stop()
	clients.Wait()

	stored := contentOf(t, database)
	for _, record := range stored {
		if _, ok := acknowledged.Load(record.ID); !ok {
			t.Errorf("%s is stored, but its client got no response", record.ID)
		}
	}
	if int64(len(stored)) != count.Load() {
		t.Errorf("%d relayers are stored, and %d were acknowledged", len(stored), count.Load())
	}
}

// expectFailedStart starts a server that must end with status 1 and one line.
func expectFailedStart(t *testing.T, want string, args ...string) {
	t.Helper()
	expectFailureWith(t, want, token, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
}
