package browser

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serverBinary is relayerd, built once for all tests.
var serverBinary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	directory, err := os.MkdirTemp("", "browser")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(directory)
	if browserPath() != "" {
		serverBinary = filepath.Join(directory, "relayerd")
		build := exec.Command("go", "build", "-o", serverBinary, ".")
		build.Dir = "../../cmd/relayerd"
		if output, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, output)
			return 1
		}
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// browserPath returns the path of the browser, or "" if there is none or -short is set.
func browserPath() string {
	if testing.Short() {
		return ""
	}
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// token is a text that occurs nowhere else, so that a search for it finds leaks.
const token = "Token-7f3a91c2d4e85b60"

const collection = "/api/v1/relayers"

// server is a running relayerd.
type server struct {
	t       *testing.T
	url     string
	process *os.Process
	log     *output
}

// output collects the output of a process.
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

var listening = regexp.MustCompile(`msg=serving address=(\S+)`)

func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	command := exec.Command(serverBinary, append([]string{"serve", "--addr", "127.0.0.1:0", "--drain-delay", "0", "--db", "memory"}, args...)...)
	if !slices.Contains(args, "--tokens-file") {
		command.Env = append(os.Environ(), "API_KEY="+token)
	}
	log := &output{}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollInterval) {
		if found := listening.FindStringSubmatch(log.String()); found != nil {
			return &server{t: t, url: "http://" + found[1], process: command.Process, log: log}
		}
	}
	t.Fatalf("the server does not start: %s", log)
	return nil
}

// openList is like open, and signs in.
func openList(t *testing.T, serverArgs ...string) *tab {
	t.Helper()
	b := open(t, serverArgs...)
	b.enter("Relayers")
	return b
}

// openTokens is like open for a server with a tokens file, whose path it returns.
func openTokens(t *testing.T, lines string, serverArgs ...string) (b *tab, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tokens")
	writeFile(t, file, lines+"\n")
	return open(t, append(serverArgs, "--tokens-file", file)...), file
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// do sends a request to the API without a browser.
func (s *server) do(method, path, body string, wantStatus int) string {
	s.t.Helper()
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != wantStatus {
		s.t.Fatalf("%s %s returned %d %s, error %v", method, path, response.StatusCode, content, err)
	}
	return string(content)
}

// create creates a relayer with the required fields only.
func (s *server) create(id, name string) {
	s.t.Helper()
	s.do("POST", collection, fmt.Sprintf(
		`{"id":%q,"name":%q,"network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"}`, id, name), http.StatusCreated)
}

// createMany creates relayers many-0, many-1 and so on, in this order.
func (s *server) createMany(count int) {
	s.t.Helper()
	for i := range count {
		s.create(fmt.Sprint("many-", i), fmt.Sprint("Many ", i))
	}
}
