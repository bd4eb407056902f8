package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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

type process struct {
	t       *testing.T
	command *exec.Cmd
	output  *output
	url     string
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
	p := &process{t: t, command: command(apiKey, append([]string{"-addr", "127.0.0.1:0"}, args...)...), output: new(output)}
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	p.await(servingLine)
	p.url = "http://" + servingLine.FindStringSubmatch(p.output.String())[1]
	return p
}

func (p *process) await(line *regexp.Regexp) {
	p.t.Helper()
	for range 1500 {
		if line.MatchString(p.output.String()) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.t.Fatalf("no line matches %s: %s", line, p.output)
}

// stop sends SIGTERM and checks that the server shuts down without an error.
func (p *process) stop() {
	p.t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil || !strings.Contains(p.output.String(), "msg=stopped") {
		p.t.Errorf("after SIGTERM: error %v: %s", err, p.output)
	}
}

// do sends a request. An empty bearer token is not sent.
func (p *process) do(method, path, bearer, body string) (status int, response string) {
	p.t.Helper()
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
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

func TestServer_KeepsRelayersAcrossRestart(t *testing.T) {
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "-db", database)
	status, created := server.do("POST", collection, token, definition)
	if status != http.StatusCreated {
		t.Fatalf("create returned %d: %s", status, created)
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

func TestServer_MemoryWritesNoFile(t *testing.T) {
	directory := t.TempDir()
	t.Chdir(directory)
	server := start(t, token, "-db", "memory")
	if status, body := server.do("POST", collection, token, definition); status != http.StatusCreated {
		t.Errorf("create returned %d: %s", status, body)
	}
	server.stop()
	if entries, err := os.ReadDir(directory); err != nil || len(entries) > 0 {
		t.Errorf("files %v, error %v", entries, err)
	}
}

func TestServer_Authentication(t *testing.T) {
	server := start(t, token, "-db", "memory")
	for bearer, want := range map[string]int{token: http.StatusOK, "wrong": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		if status, body := server.do("GET", collection, bearer, ""); status != want {
			t.Errorf("bearer token %q: status %d, want %d: %s", bearer, status, want, body)
		}
	}
	server.stop()
}

func TestServer_GeneratesToken(t *testing.T) {
	server := start(t, "", "-db", "memory")
	printed := regexp.MustCompile(`curl -H 'Authorization: Bearer (\S+)'`).FindStringSubmatch(server.output.String())
	if printed == nil {
		t.Fatalf("no curl line: %s", server.output)
	}
	if status, body := server.do("GET", collection, printed[1], ""); status != http.StatusOK {
		t.Errorf("the generated token returned %d: %s", status, body)
	}
	server.stop()
}

func TestServer_Health(t *testing.T) {
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "-db", database)
	expect := func(path string, wantStatus int, wantBody string) {
		t.Helper()
		if status, body := server.do("GET", path, "", ""); status != wantStatus || body != wantBody+"\n" {
			t.Errorf("%s returned %d %q, want %d %q", path, status, body, wantStatus, wantBody)
		}
	}
	expect("/healthz/live", http.StatusOK, "live")
	expect("/healthz/ready", http.StatusOK, "ready")
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	expect("/healthz/live", http.StatusOK, "live")
	expect("/healthz/ready", http.StatusServiceUnavailable, "store unavailable")
	server.stop()
}

// A request that is running when SIGTERM arrives gets its response.
func TestServer_SIGTERMDrainsRequests(t *testing.T) {
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "-db", database)
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	// The server asks for the body with 100 Continue while it handles the request.
	_, err = io.WriteString(connection, "POST "+collection+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
		"Authorization: Bearer "+token+"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.ReadFull(connection, make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	if err := server.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	server.await(regexp.MustCompile("msg=stopping"))
	if _, err := fmt.Fprintf(connection, "%x\r\n%s\r\n0\r\n\r\n", len(definition), definition); err != nil {
		t.Fatal(err)
	}
	response, err := io.ReadAll(connection)
	if err != nil || !strings.HasPrefix(string(response), "HTTP/1.1 201 Created") {
		t.Errorf("the running request returned %q, error %v", response, err)
	}
	if err := server.command.Wait(); err != nil {
		t.Errorf("after SIGTERM: error %v: %s", err, server.output)
	}
	server = start(t, token, "-db", database)
	if status, body := server.do("GET", collection+"/r-1", token, ""); status != http.StatusOK {
		t.Errorf("get returned %d: %s", status, body)
	}
	server.stop()
}

// A failed start prints one line, exits with status 1 and creates no file.
func TestServer_FailedStart(t *testing.T) {
	directory := t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	running := start(t, token, "-db", database)
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		apiKey string
		args   []string
		want   string
	}{
		"port in use":       {token, []string{"-addr", strings.TrimPrefix(running.url, "http://")}, "address already in use (choose another address with -addr)"},
		"no port":           {token, []string{"-addr", "localhost"}, "missing port in address"},
		"file in use":       {token, []string{"-addr", "127.0.0.1:0", "-db", database}, "file is in use"},
		"directory":         {token, []string{"-addr", "127.0.0.1:0", "-db", directory}, "choose another path"},
		"no file":           {token, []string{"-db="}, "-db is empty (-h lists the flags)"},
		"connection string": {token, []string{"-db", "postgres://u:Secret-5d20c7b19e@h/d"}, "-db must be a file; cmd/relayerd can use PostgreSQL"},
		"unknown flag":      {token, []string{"-port", "1"}, "flag provided but not defined: -port (-h lists the flags)"},
		"extra argument":    {token, []string{"serve"}, `unexpected argument "serve"`},
		"invalid token":     {"a token of words", []string{"-addr", "127.0.0.1:0", "-db", "memory"}, "API_KEY: httpapi: bearer token 1 is empty or contains spaces"},
	} {
		t.Run(name, func(t *testing.T) {
			failing := command(c.apiKey, c.args...)
			var stdout, stderr bytes.Buffer
			failing.Stdout, failing.Stderr = &stdout, &stderr
			if err := failing.Start(); err != nil {
				t.Fatal(err)
			}
			timeout := time.AfterFunc(30*time.Second, func() { _ = failing.Process.Kill() })
			defer timeout.Stop()
			_ = failing.Wait()
			text := stderr.String()
			if failing.ProcessState.ExitCode() != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, c.want) || stdout.Len() > 0 {
				t.Errorf("exit status %d, stdout %q, stderr %q, want one line with %q",
					failing.ProcessState.ExitCode(), stdout.String(), text, c.want)
			}
			if strings.Contains(text, "Secret-5d20c7b19e") || strings.Contains(text, "of words") {
				t.Errorf("the error contains a secret: %s", text)
			}
		})
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("files %v, error %v", entries, err)
	}
	running.stop()
}

func TestServer_Help(t *testing.T) {
	text, err := command("", "-h").Output()
	if err != nil || !strings.Contains(string(text), "-addr host:port") || !strings.Contains(string(text), "-db file") {
		t.Errorf("help is %q, error %v", text, err)
	}
}
