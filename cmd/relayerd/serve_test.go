package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMetricsAddress_SeparatePort(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--metrics-addr", "127.0.0.1:0")
	found := regexp.MustCompile(`msg="serving metrics" address=(\S+)`).FindStringSubmatch(server.output.String())
	if found == nil {
		t.Fatalf("no address of the metrics: %s", server.output)
	}
	metrics := &process{t: t, url: "http://" + found[1]}
	metrics.expectStatus("GET", "/metrics", "", "", http.StatusOK)
	if status, body := metrics.do("GET", "/metrics", ""); status != http.StatusOK || !strings.Contains(body, "relayer_operations_total") {
		t.Errorf("metrics returned %d: %s", status, body)
	}
	for _, path := range []string{"/", collection, "/healthz/live"} {
		if status, body := metrics.do("GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s on the port of the metrics returned %d: %s", path, status, body)
		}
	}
	server.expectStatus("GET", "/metrics", token, "", http.StatusNotFound)
	server.expectStatus("GET", "/metrics", "wrong", "", http.StatusUnauthorized)
	server.expectStatus("GET", collection, token, "", http.StatusOK)

	expectFailedStart(t, "address already in use (choose another address with --metrics-addr)", "--db", "memory", "--metrics-addr", found[1])
	server.stop()
	expectFailedStart(t, "--metrics-addr must be host:port", "--db", "memory", "--metrics-addr", "u:"+password+"@h/d")
}

// Without an address of their own, the metrics need a token, and one that sees all relayers.
func TestMetrics_NeedToken(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	for _, method := range []string{"GET", "HEAD"} {
		server.expectStatus(method, "/metrics", "", "", http.StatusUnauthorized)
		server.expectStatus(method, "/metrics", "wrong", "", http.StatusUnauthorized)
		server.expectStatus(method, "/metrics", token, "", http.StatusOK)
	}
	server.stop()

	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "prometheus "+readerToken+" read", "payments "+newToken+" write label.team=payments")
	server = start(t, "", "--db", "memory", "--tokens-file", path)
	server.expectStatus("GET", "/metrics", readerToken, "", http.StatusOK)
	server.expectStatus("GET", "/metrics", newToken, "", http.StatusNotFound)
	server.expectStatus("GET", "/metrics", oldToken, "", http.StatusUnauthorized)
	writeTokens(t, path, "prometheus "+oldToken+" read")
	server.reload("tokens reloaded", 1)
	server.expectStatus("GET", "/metrics", readerToken, "", http.StatusUnauthorized)
	server.expectStatus("GET", "/metrics", oldToken, "", http.StatusOK)
	server.stop()
}

func TestLogFormat_JSON(t *testing.T) {
	t.Parallel()
	command, log := serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory", "--log-format", "json"), new(output)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	log.awaitText(t, `"msg":"serving"`, 1)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("after SIGTERM: error %v", err)
	}
	var messages []string
	for line := range strings.Lines(log.String()) {
		var record struct {
			Level, Msg string
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level != "INFO" {
			t.Errorf("line %q, error %v", line, err)
		}
		messages = append(messages, record.Msg)
	}
	if strings.Join(messages, ",") != "serving,stopping,stopped" {
		t.Errorf("messages %q", messages)
	}
	expectFailedStart(t, "--log-format must be text or json", "--db", "memory", "--log-format", "xml")
}

// A connection above the limit is served as soon as another one is closed.
func TestMaxConnections_Waits(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--max-connections", "2")
	address := strings.TrimPrefix(server.url, "http://")
	var connections []net.Conn
	for range 3 {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		connections = append(connections, connection)
		if _, err := io.WriteString(connection, "GET /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	read := func(connection net.Conn, timeout time.Duration) error {
		_ = connection.SetReadDeadline(time.Now().Add(timeout))
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	for i := range 2 {
		if err := read(connections[i], 30*time.Second); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	if err := read(connections[2], 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the third connection: error %v, want a timeout", err)
	}
	connections[0].Close()
	if err := read(connections[2], 30*time.Second); err != nil {
		t.Errorf("the third connection after another was closed: %v", err)
	}
	connections[1].Close()
	connections[2].Close()
	server.expectStatus("GET", collection, token, "", http.StatusOK)
	server.stop()
	expectFailedStart(t, "--max-connections must be 0 or more", "--db", "memory", "--max-connections", "-1")
}

// The limit applies to connections whose TLS handshake has not ended.
func TestMaxConnections_TLS(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	cert, key := newCertificate(t, "first")
	writeFiles(t, map[string][]byte{certFile: cert, keyFile: key})
	server := start(t, token, "--db", "memory", "--max-connections", "1", "--tls-cert", certFile, "--tls-key", keyFile)
	silent, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	served := make(chan error, 1)
	go func() {
		_, err := servedName(t, server, cert)
		served <- err
	}()
	select {
	case err := <-served:
		t.Fatalf("a second connection was served, error %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	silent.Close()
	if err := <-served; err != nil {
		t.Errorf("after the first connection was closed: %v", err)
	}
	server.stop()
}
