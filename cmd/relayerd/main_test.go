package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asServer makes the test binary run main instead of the tests, so that the tests
// have a real process with signals and an exit status.
const asServer = "RELAYER_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	status := m.Run()
	if sharedPostgres.server != nil {
		_ = sharedPostgres.server.Close()
	}
	os.Exit(status)
}

const (
	token      = "test-token-0123456789"
	collection = "/api/v1/relayers"
	definition = `{"id":"r-1","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`

	// password occurs nowhere else, so that a search for it finds leaks. The tokens of tokens files
	// begin with it.
	password    = "Secret-5d20c7b19e"
	oldToken    = password + "-old"
	newToken    = password + "-new"
	readerToken = password + "-reader"
)

// definitionOf is the definition with another ID.
func definitionOf(id string) string { return strings.Replace(definition, "r-1", id, 1) }

// process is a running server.
type process struct {
	t       testing.TB
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

// requireProgram returns the path of a program. If it is not installed, the test is skipped, and
// fails in CI.
func requireProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		skipUnlessCI(t, err)
	}
	return path
}

func skipUnlessCI(t *testing.T, missing error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustGet returns a function that returns the value, or fails the test with the error.
func mustGet[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// await waits until a condition holds, and reports whether it did in time.
func await(condition func() bool) bool {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return true
		}
	}
	return condition()
}

// awaitText waits until the output contains a text count times.
func (o *output) awaitText(t testing.TB, text string, count int) {
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

// serverCommand has a free port and no drain delay unless the arguments have others.
func serverCommand(apiKey string, args ...string) *exec.Cmd {
	return program(apiKey, append([]string{"serve", "--drain-delay", "0", "--addr", "127.0.0.1:0"}, args...)...)
}

var listening = regexp.MustCompile(`(?:msg=serving address=|"msg":"serving","address":")([^\s"]+)`)

// start runs a server and waits until it serves.
func start(t testing.TB, apiKey string, args ...string) *process {
	t.Helper()
	for {
		p := &process{t: t, command: serverCommand(apiKey, args...), output: new(output)}
		if p.run() {
			return p
		}
	}
}

// startMemory is start with a store in memory.
func startMemory(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, token, append([]string{"--db", "memory"}, args...)...)
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
	must(p.t, p.command.Start())
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

func (p *process) address() string { return strings.TrimPrefix(p.url, "http://") }

func (p *process) signal(signal syscall.Signal) {
	p.t.Helper()
	must(p.t, p.command.Process.Signal(signal))
}

// stop sends SIGTERM, and checks that the server ends without an error and has printed no secret.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.command.Wait(); err != nil || !strings.Contains(p.output.String(), "stopped") {
		p.t.Fatalf("after SIGTERM: error %v: %s", err, p.output)
	}
	expectNoSecret(p.t, p.output.String())
}

// reload sends SIGHUP and waits until the log has another line with a text.
func (p *process) reload(text string) {
	p.t.Helper()
	before := strings.Count(p.output.String(), text)
	p.signal(syscall.SIGHUP)
	p.output.awaitText(p.t, text, before+1)
}

// send sends a request with pairs of header names and values. An empty bearer token is not sent.
func (p *process) send(ctx context.Context, client *http.Client, method, path, bearer, body string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	if p.reason != "" {
		request.Header.Set("X-Change-Reason", p.reason)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return client.Do(request)
}

// try sends a request that may fail, and returns the response with its body.
func (p *process) try(client *http.Client, method, path, bearer, body string, headers ...string) (*http.Response, string, error) {
	response, err := p.send(context.Background(), client, method, path, bearer, body, headers...)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response, string(content), err
}

func (p *process) do(method, path, body string) (status int, response string) {
	p.t.Helper()
	received, content, err := p.try(http.DefaultClient, method, path, token, body)
	must(p.t, err)
	return received.StatusCode, content
}

// expect sends a request and returns the body of the response.
func (p *process) expect(method, path, bearer, body string, want int) string {
	p.t.Helper()
	response, content, err := p.try(http.DefaultClient, method, path, bearer, body)
	if err != nil {
		p.t.Errorf("%s %s: %v", method, path, err)
	} else if response.StatusCode != want {
		p.t.Errorf("%s %s with %s returned %d, want %d: %s", method, path, bearer, response.StatusCode, want, content)
	}
	return content
}

// finished is a command that has ended.
type finished struct {
	status         int
	stdout, stderr string
}

// finish runs a process to its end, and checks that it prints no secret.
func finish(t *testing.T, stdin string, command *exec.Cmd) finished {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	_ = command.Run()
	expectNoSecret(t, stdout.String()+stderr.String())
	return finished{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// finishHere is finish for a command that runs in this process, without an environment. The timeout
// ends a server that serves although it must not.
func finishHere(t *testing.T, apiKey string, args ...string) finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	status := execute(ctx, args, apiKey, strings.NewReader(""), &stdout, &stderr)
	expectNoSecret(t, stdout.String()+stderr.String())
	return finished{status, stdout.String(), stderr.String()}
}

// expect checks the exit status of a command and returns what it has printed.
func expect(t *testing.T, status int, args ...string) finished {
	t.Helper()
	done := finishHere(t, token, args...)
	for status == 0 && isLate(done.stderr) {
		done = finishHere(t, token, args...)
	}
	if done.status != status {
		t.Fatalf("%q: exit status %d, want %d: %s%s", args, done.status, status, done.stdout, done.stderr)
	}
	return done
}

// runCommand runs a command that must succeed.
func runCommand(t *testing.T, args ...string) (output string) {
	t.Helper()
	done := expect(t, 0, args...)
	return done.stdout + done.stderr
}

// expectOutput runs a command that must succeed, and checks what it prints.
func expectOutput(t *testing.T, want string, args ...string) {
	t.Helper()
	if output := runCommand(t, args...); output != want {
		t.Errorf("%q: output %q, want %q", args, output, want)
	}
}

// expectFailure runs a command that must end with status 1 and one line.
func expectFailure(t *testing.T, want string, args ...string) {
	t.Helper()
	expectFailureWith(t, want, token, args...)
}

func expectFailureWith(t *testing.T, want, apiKey string, args ...string) {
	t.Helper()
	done := finishHere(t, apiKey, args...)
	if done.status != 1 || strings.Count(done.stderr, "\n") != 1 || !strings.Contains(done.stderr, want) || done.stdout != "" {
		t.Errorf("%q: exit status %d, stdout %q, stderr %q, want one line with %q", args, done.status, done.stdout, done.stderr, want)
	}
}

// expectNoSecret checks that a text has neither the password nor the secret of a URL.
func expectNoSecret(t testing.TB, text string) {
	t.Helper()
	if strings.Contains(text, password) || strings.Contains(text, urlSecret) {
		t.Errorf("a secret is in the output: %s", text)
	}
}

func fileContent(t *testing.T, path string) []byte {
	t.Helper()
	return mustGet(os.ReadFile(path))(t)
}

// writeFile replaces a file, as Kubernetes and editors do.
func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	must(t, os.WriteFile(path+".next", []byte(content), 0o600))
	must(t, os.Rename(path+".next", path))
	return path
}

// newFile writes a file in a new directory.
func newFile(t *testing.T, content string) (path string) {
	t.Helper()
	return writeFile(t, filepath.Join(t.TempDir(), "config.json"), content)
}

// newTokens writes a tokens file in a new directory.
func newTokens(t *testing.T, lines ...string) (path string) {
	t.Helper()
	return newFile(t, strings.Join(lines, "\n")+"\n")
}

// expectFiles checks which files a directory contains.
func expectFiles(t *testing.T, directory string, want ...string) {
	t.Helper()
	entries := mustGet(os.ReadDir(directory))(t)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}

// createRealRelayers creates relayers by definitions from public deployments, byte by byte, and
// returns their documents, which have every member sent.
func createRealRelayers(t *testing.T, server *process) (documents []string) {
	t.Helper()
	var entries []struct{ Relayer json.RawMessage }
	must(t, json.Unmarshal(fileContent(t, "testdata/real-relayers.json"), &entries))
	for _, entry := range entries {
		document := data(t, server.expect("POST", collection, token, string(entry.Relayer), http.StatusCreated))
		if !contains(exactly(t, document), exactly(t, entry.Relayer)) {
			t.Errorf("sent %s\ngot  %s", entry.Relayer, document)
		}
		documents = append(documents, string(document))
	}
	if len(documents) != 28 {
		t.Fatalf("%d definitions, want 28", len(documents))
	}
	return documents
}

func data(t *testing.T, body string) json.RawMessage {
	t.Helper()
	var envelope struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(body), &envelope); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return envelope.Data
}

// exactly decodes JSON without rounding a number.
func exactly(t *testing.T, data json.RawMessage) (value any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	must(t, decoder.Decode(&value))
	return value
}

// contains reports whether a JSON value has every member of another, at any depth.
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

// Each change of a relayer survives a restart.
func TestServe_Restart(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database, "--network-rules")
	documents := createRealRelayers(t, server)
	for i, document := range documents {
		if body := server.expect("GET", fmt.Sprintf("%s?page=%d&per_page=1", collection, i+1), token, "", http.StatusOK); !strings.Contains(body, `"data":[`+document+`]`) {
			t.Errorf("created %s\nlisted  %s", document, body)
		}
	}
	patched := server.expect("PATCH", collection+"/sepolia-example", token, `{"paused":true,"policies":{"gas_price_cap":1e21}}`, http.StatusOK)
	if !strings.Contains(patched, `"gas_price_cap":1000000000000000000000`) {
		t.Errorf("patched %s", patched)
	}
	server.expect("POST", collection, token, definition, http.StatusCreated)
	server.expect("DELETE", collection+"/r-1", token, "", http.StatusOK)
	const all = collection + "?per_page=100&changes=true"
	before := server.expect("GET", all, token, "", http.StatusOK)
	server.stop()
	server = start(t, token, "--db", database)
	if after := server.expect("GET", all, token, "", http.StatusOK); after != before {
		t.Errorf("before a restart\n%s\nand after it\n%s", before, after)
	}
	if read := server.expect("GET", collection+"/sepolia-example", token, "", http.StatusOK); read != patched {
		t.Errorf("patched %s\nread    %s", patched, read)
	}
	server.expect("GET", collection+"/r-1", token, "", http.StatusNotFound)
	server.stop()
}

func TestServe_MemoryWritesNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	server := startMemory(t)
	server.expect("POST", collection, token, definition, http.StatusCreated)
	server.stop()
	expectFiles(t, ".")
}

const (
	evmAddress     = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
	stellarAddress = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
)

// Each flag with a rule refuses what it must, and nothing else does.
func TestServe_Rules(t *testing.T) {
	t.Parallel()
	signers := newFile(t, `{"local":{"evm":"`+evmAddress+`","stellar":"`+stellarAddress+`"},"empty":{}}`)
	of := func(signer, networkType string) string {
		return fmt.Sprintf(`{"name":"n","network":"x","network_type":%q,"paused":false,"signer_id":%q}`, networkType, signer)
	}
	with := func(member string) string { return strings.Replace(of("s", "evm"), "{", "{"+member+",", 1) }
	at := func(host string) string { return with(`"custom_rpc_urls":[{"url":"https://` + host + `"}]`) }
	badAddress := with(`"policies":{"whitelist_receivers":["not-an-address"]}`)
	const hosts = "rpc.example.com, *.example.org,10.0.0.0/8"
	for _, c := range []struct {
		flags    []string
		accepted []string
		refused  map[string]string // the definition and a part of the response
	}{
		{nil, []string{badAddress, of("s", "evm"), of("s", "evm"), at("127.0.0.1")}, nil},
		{[]string{"--network-rules"}, []string{of("s", "evm")}, map[string]string{badAddress: "whitelist_receivers[0]"}},
		{[]string{"--exclusive-signers"}, []string{of("s", "evm")}, map[string]string{of("s", "evm"): "signer_id"}},
		{[]string{"--signers", signers}, []string{of("local", "evm"), of("local", "stellar")},
			map[string]string{of("local", "solana"): "signer_id", of("empty", "evm"): "signer_id", of("unknown", "evm"): "signer_id"}},
		{[]string{"--rpc-public-only"}, []string{at("rpc.example.com")}, map[string]string{at("127.0.0.1"): "url"}},
		{[]string{"--rpc-hosts", hosts}, []string{at("rpc.example.com"), at("a.example.org"), at("10.1.2.3")}, map[string]string{at("rpc.example.net"): "url"}},
		{[]string{"--rpc-hosts", "10.0.0.0/8", "--rpc-public-only"}, []string{at("10.1.2.3")}, map[string]string{at("rpc.example.com"): "url", at("127.0.0.1"): "url"}},
	} {
		server := startMemory(t, c.flags...)
		for _, body := range c.accepted {
			created := server.expect("POST", collection, token, body, http.StatusCreated)
			if len(c.flags) == 2 && c.flags[1] == signers && !strings.Contains(created, evmAddress) && !strings.Contains(created, stellarAddress) {
				t.Errorf("the relayer has no address: %s", created)
			}
		}
		for body, want := range c.refused {
			if response := server.expect("POST", collection, token, body, http.StatusBadRequest); !strings.Contains(response, want) {
				t.Errorf("%q: %s returned %s, want %s", c.flags, body, response, want)
			}
		}
		server.stop()
	}
}

// A rate refuses the reads above three seconds of it, and 0 is no limit.
func TestServe_Rate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[string]int{"1": 3, "0": 50} {
		server := startMemory(t, "--rate", rate)
		began, accepted := time.Now(), 0
		for range 50 {
			if status, _ := server.do("GET", collection, ""); status == http.StatusOK {
				accepted++
			}
		}
		// The rate allows more requests while a slow machine sends.
		if earned := int(time.Since(began).Seconds()) + 1; accepted < want || accepted > want+earned {
			t.Errorf("--rate %s: %d requests accepted, want %d", rate, accepted, want)
		}
		server.stop()
	}
}

// Others than the group can read a file with secrets: it is a warning.
func TestWarnings_ReadableFiles(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	database, tokens, backups := filepath.Join(directory, "relayers.db"), newTokens(t, "alice "+oldToken+" write"), filepath.Join(directory, "backups")
	must(t, os.Mkdir(backups, 0o700))
	for _, c := range []struct {
		files, directory os.FileMode
		want             int
	}{{0o600, 0o700, 0}, {0o640, 0o750, 0}, {0o644, 0o755, 3}} {
		server := start(t, "", "--db", database, "--tokens-file", tokens, "--backup", backups)
		server.stop()
		must(t, os.Chmod(database, c.files))
		must(t, os.Chmod(tokens, c.files))
		must(t, os.Chmod(backups, c.directory))
		server = start(t, "", "--db", database, "--tokens-file", tokens, "--backup", backups)
		server.stop()
		if count := strings.Count(server.output.String(), "other users can read the "); count != c.want {
			t.Errorf("mode %o: %d warnings, want %d: %s", c.files, count, c.want, server.output)
		}
	}
}
