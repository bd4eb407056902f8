package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHealthcheck_ReadyServer(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	address := strings.TrimPrefix(server.url, "http://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{address, "localhost:" + port, "0.0.0.0:" + port, ":" + port} {
		command := program("", "healthcheck", "--addr", name)
		// A proxy of the environment is not used.
		command.Env = append(command.Env, "http_proxy=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1")
		if output, err := command.CombinedOutput(); err != nil || string(output) != "ready\n" {
			t.Errorf("--addr %s: output %q, error %v", name, output, err)
		}
	}
	server.stop()
	const closed = "127.0.0.1:1" // another process may have taken the port of the server
	expectFailure(t, closed+" is not ready: dial tcp "+closed+": connect: connection refused", "healthcheck", "--addr", closed)
}

func TestHealthcheck_TLS(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	cert, key := newCertificate(t, "first")
	writeFiles(t, map[string][]byte{certFile: cert, keyFile: key})
	encrypted := start(t, token, "--db", "memory", "--tls-cert", certFile, "--tls-key", keyFile)
	plain := start(t, token, "--db", "memory")
	encryptedAddress, plainAddress := strings.TrimPrefix(encrypted.url, "http://"), strings.TrimPrefix(plain.url, "http://")
	if output := runCommand(t, "healthcheck", "--addr", encryptedAddress, "--tls"); output != "ready\n" {
		t.Errorf("output %q", output)
	}
	expectFailure(t, "HTTP request to an HTTPS server", "healthcheck", "--addr", encryptedAddress)
	expectFailure(t, "first record does not look like a TLS handshake", "healthcheck", "--addr", plainAddress, "--tls")
	encrypted.stop()
	plain.stop()
}

func TestHealthcheck_NotReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{http.StatusServiceUnavailable, "store unavailable\n", `status 503 Service Unavailable: "store unavailable"`},
		{http.StatusFound, "", `status 302 Found: ""`},
		{http.StatusNoContent, "", `status 204 No Content: ""`},
		{http.StatusNotFound, "two\nlines" + strings.Repeat(" long", 10_000), `status 404 Not Found: "two\nlines long`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != "/healthz/ready" {
				t.Errorf("request %s %s", r.Method, r.URL)
			}
			w.Header().Set("Location", "/healthz/live")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		address := server.Listener.Addr().String()
		expectFailure(t, address+" is not ready: "+c.want, "healthcheck", "--addr", address)
		server.Close()
	}
	expectFailure(t, "--addr must be host:port", "healthcheck", "--addr", "postgres://u:"+password+"@h/d")
	expectFailure(t, "--addr is empty", "healthcheck", "--addr=")
}

// A server that accepts connections and does not respond is not ready.
func TestHealthcheck_Timeout(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	began := time.Now()
	expectFailure(t, "is not ready: no response within 5s", "healthcheck", "--addr", listener.Addr().String())
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the check took %s", took)
	}
}
