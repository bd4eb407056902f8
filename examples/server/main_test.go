package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// runAsServer makes the test binary run main instead of the tests.
const runAsServer = "RELAYER_TEST_RUN_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(runAsServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	token      = "test-token-0123456789"
	collection = "/api/v1/relayers"
	definition = `{"id":"r-1","name":"n","network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"}`
)

// output collects the output of a running process.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	grown  chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.grown <- struct{}{}:
	default:
	}
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

type process struct {
	*exec.Cmd
	t      *testing.T
	output *output
	ended  chan error
	url    string
}

func command(apiKey string, args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), runAsServer+"=1", "API_KEY="+apiKey, "GORACE=atexit_sleep_ms=10")
	return command
}

var servingLine = regexp.MustCompile(`msg=serving address=(\S+)`)

// start runs a server on a free port and waits until it serves.
func start(t *testing.T, apiKey string, args ...string) *process {
	t.Helper()
	p := &process{t: t, Cmd: command(apiKey, append([]string{"-addr", "127.0.0.1:0"}, args...)...), output: &output{grown: make(chan struct{}, 1)}, ended: make(chan error, 1)}
	p.Stdout, p.Stderr = p.output, p.output
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	go func() { p.ended <- p.Wait() }()
	for p.url == "" {
		select {
		case <-p.output.grown:
			if line := servingLine.FindStringSubmatch(p.output.String()); line != nil {
				p.url = "http://" + line[1]
			}
		case err := <-p.ended:
			t.Fatalf("the server ended: %v: %s", err, p.output)
		}
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stop sends SIGTERM and checks that the server shuts down without an error.
func (p *process) stop() {
	p.t.Helper()
	must(p.t, p.Process.Signal(syscall.SIGTERM))
	if err := <-p.ended; err != nil || !strings.Contains(p.output.String(), "msg=stopped") {
		p.t.Errorf("after SIGTERM: error %v: %s", err, p.output)
	}
}

// do sends a request.
func (p *process) do(method, path, bearer, body string) (status int, response string) {
	p.t.Helper()
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	must(p.t, err)
	request.Header.Set("Authorization", "Bearer "+bearer)
	request.Header.Set("Content-Type", "application/json")
	received, err := http.DefaultClient.Do(request)
	must(p.t, err)
	defer received.Body.Close()
	content, err := io.ReadAll(received.Body)
	must(p.t, err)
	return received.StatusCode, string(content)
}

// A server keeps its relayers across restarts, requires the token, and prints none of API_KEY.
func TestServer(t *testing.T) {
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "-db", database)
	status, created := server.do("POST", collection, token, definition)
	if status != http.StatusCreated {
		t.Fatalf("create returned %d: %s", status, created)
	}
	if status, body := server.do("GET", collection, "wrong", ""); status != http.StatusUnauthorized {
		t.Errorf("another token: %d %s", status, body)
	}
	server.stop()

	server = start(t, token, "-db", database)
	if status, got := server.do("GET", collection+"/r-1", token, ""); status != http.StatusOK || got != created {
		t.Errorf("get returned %d %s, want %s", status, got, created)
	}
	server.stop()
	if strings.Contains(server.output.String(), token) {
		t.Errorf("the output contains the token of API_KEY: %s", server.output)
	}
}

// A start without a token prints one line, exits with status 1 and creates no file.
func TestServer_WithoutToken(t *testing.T) {
	database := filepath.Join(t.TempDir(), "relayers.db")
	text, err := command("", "-db", database).CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 1 || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), "API_KEY: ") {
		t.Errorf("error %v: %s", err, text)
	}
	if _, err := os.Stat(database); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the database exists, error %v", err)
	}
}
