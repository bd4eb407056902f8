package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

// process is a running server. Its output is read until it serves, and again by stop.
type process struct {
	*exec.Cmd
	t      *testing.T
	lines  *bufio.Scanner // ends with the error of the process
	output strings.Builder
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
	reader, writer := io.Pipe()
	args = append([]string{"-addr", "127.0.0.1:0"}, args...)
	p := &process{t: t, Cmd: command(apiKey, args...), lines: bufio.NewScanner(reader)}
	p.Stdout, p.Stderr = writer, writer
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	go func() { _ = writer.CloseWithError(p.Wait()) }()
	for p.url == "" {
		if !p.read() {
			t.Fatalf("the server ended: %v: %s", p.lines.Err(), &p.output)
		}
		if line := servingLine.FindStringSubmatch(p.lines.Text()); line != nil {
			p.url = "http://" + line[1]
		}
	}
	return p
}

// read reads a line of the output.
func (p *process) read() bool {
	isRead := p.lines.Scan()
	p.output.WriteString(p.lines.Text() + "\n")
	return isRead
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
	for p.read() {
	}
	if err := p.lines.Err(); err != nil || !strings.Contains(p.output.String(), "msg=stopped") {
		p.t.Errorf("after SIGTERM: error %v: %s", err, &p.output)
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
		t.Errorf("the output contains the token of API_KEY: %s", &server.output)
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
