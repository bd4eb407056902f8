package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// attackers are connections that try to exhaust the server.
type attackers struct {
	t       *testing.T
	address string
	open    []net.Conn
}

func (a *attackers) dial(count int) []net.Conn {
	a.t.Helper()
	var dialed []net.Conn
	for range count {
		connection, err := net.Dial("tcp", a.address)
		if err != nil {
			a.t.Fatalf("after %d connections: %v", len(a.open), err)
		}
		a.open = append(a.open, connection)
		dialed = append(dialed, connection)
	}
	return dialed
}

func (a *attackers) close() {
	for _, connection := range a.open {
		_ = connection.Close()
	}
}

// trickle sends a byte every 100 ms until the connection breaks or done is closed.
func trickle(connection net.Conn, text string, done <-chan struct{}) {
	for {
		for i := range len(text) {
			if _, err := io.WriteString(connection, text[i:i+1]); err != nil {
				return
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// idleConnections returns how many connections the process may open, at most
// wanted.
func idleConnections(t *testing.T, wanted int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	possible := int(min(limit.Cur, 1<<20)) - 1000
	if possible < wanted {
		t.Logf("only %d idle connections: the system allows no more", possible)
	}
	return max(1, min(possible, wanted))
}

// Other clients are served while connections idle, send headers or bodies slowly, do
// not read responses, or send too many headers.
func TestServe_SlowAndIdleConnections(t *testing.T) {
	server := start(t, token, "--db", "memory", "--rate", "0")
	done := make(chan struct{})
	attack := &attackers{t: t, address: strings.TrimPrefix(server.url, "http://")}
	var trickling sync.WaitGroup
	defer trickling.Wait()
	defer attack.close()
	defer close(done)

	attack.dial(idleConnections(t, 10_000))
	slowHeaders := attack.dial(200)
	for _, connection := range slowHeaders {
		trickling.Go(func() {
			trickle(connection, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", done)
		})
	}
	for _, connection := range attack.dial(100) {
		const head = "POST /api/v1/relayers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
		if _, err := io.WriteString(connection, head); err != nil {
			t.Fatal(err)
		}
		trickling.Go(func() { trickle(connection, `{"name":"`, done) })
	}
	for _, connection := range attack.dial(1100) {
		// It requests the largest response that needs no token, and does not read it.
		_ = connection.(*net.TCPConn).SetReadBuffer(2048)
		if _, err := io.WriteString(connection, strings.Repeat("GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 30)); err != nil {
			t.Fatal(err)
		}
	}
	flood := attack.dial(1)[0]
	go func() {
		_, _ = io.WriteString(flood, "GET / HTTP/1.1\r\nHost: x\r\n"+strings.Repeat("X-Flood: "+strings.Repeat("a", 1000)+"\r\n", 1000)+"\r\n")
	}()
	response, err := http.ReadResponse(bufio.NewReader(flood), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a flood of headers returned %d", response.StatusCode)
	}

	definition := `{"id":"r-%d","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`
	for i := range 50 {
		if status, body := server.do("POST", collection, fmt.Sprintf(definition, i)); status != http.StatusCreated {
			t.Fatalf("create returned %d: %s", status, body)
		}
		if status, _ := server.do("GET", fmt.Sprintf("%s/r-%d", collection, i), ""); status != http.StatusOK {
			t.Fatalf("get returned %d", status)
		}
	}
	// A connection that does not complete its headers is closed.
	for _, connection := range slowHeaders[:20] {
		_ = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, connection); err != nil && !isReset(err) {
			t.Fatalf("a connection with slow headers was still open: %v", err)
		}
	}
	if status, _ := server.do("GET", collection, ""); status != http.StatusOK {
		t.Errorf("after the attack, list returned %d", status)
	}
}

// isReset reports whether the server closed the connection before all was sent.
func isReset(err error) bool {
	failed, ok := err.(net.Error)
	return ok && !failed.Timeout()
}
