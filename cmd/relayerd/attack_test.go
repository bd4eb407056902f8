package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var connections = flag.Int("connections", 2000, "connections of each kind that try to exhaust a server; 10000 in a long run")

// attack is a kind of connections that try to exhaust the server.
type attack struct {
	name    string
	sent    string // at the beginning
	trickle string // a byte a second
}

// open opens a connection as over a real network: on a loopback interface the buffers of the
// system would take whole responses. The port is free as soon as it is closed.
func (a attack) open(address string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, _ string, connection syscall.RawConn) (err error) {
		controlErr := connection.Control(func(fd uintptr) {
			err = cmp.Or(syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1400),
				syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048))
		})
		return cmp.Or(err, controlErr)
	}}
	connection, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(connection, a.sent)
	return connection, cmp.Or(connection.(*net.TCPConn).SetLinger(0), err)
}

// begin opens connections, until the test ends.
func (a attack) begin(t *testing.T, address string, count int) (opened []net.Conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var trickling sync.WaitGroup
	t.Cleanup(trickling.Wait)
	t.Cleanup(cancel)
	for range count {
		connection, err := a.open(address)
		if err != nil {
			t.Fatalf("after %d connections: %v", len(opened), err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		opened = append(opened, connection)
		trickling.Go(func() { trickle(ctx, connection, a.trickle) })
	}
	return opened
}

// trickle sends a byte every second until the connection breaks.
func trickle(ctx context.Context, connection net.Conn, text string) {
	for i := range len(text) {
		if _, err := io.WriteString(connection, text[i:i+1]); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// permitted returns how many connections the process may open, at most wanted.
func permitted(t *testing.T, wanted int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	possible := int(min(limit.Cur, 1<<20)) - 1000
	if possible < wanted {
		t.Logf("only %d connections: the system allows no more", possible)
	}
	return max(1, min(possible, wanted))
}

// ordinary sends requests of an ordinary caller, each on its own connection, and returns how
// long they took.
func ordinary(t *testing.T, server *process, prefix string) (took []time.Duration) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for i := range 50 {
		id := fmt.Sprintf("%s-%d", prefix, i)
		for _, request := range []struct {
			method, path, body string
			want               int
		}{
			{"POST", collection, strings.Replace(definition, "r-1", id, 1), http.StatusCreated},
			{"GET", collection + "/" + id, "", http.StatusOK},
			{"GET", collection, "", http.StatusOK},
			{"GET", readinessPath, "", http.StatusOK},
			{"PATCH", collection + "/" + id, `{"paused":true}`, http.StatusOK},
		} {
			begin := time.Now()
			status, err := server.statusWith(client, request.method, request.path, newToken, request.body)
			// All callers of the test have one address, whose share a burst uses until each request is
			// authenticated. A client repeats what a full server refuses.
			for repeats := 0; err == nil && status == http.StatusServiceUnavailable && repeats < 100; repeats++ {
				time.Sleep(20 * time.Millisecond)
				status, err = server.statusWith(client, request.method, request.path, newToken, request.body)
			}
			if err != nil || status != request.want {
				t.Fatalf("%s %s returned %d, error %v", request.method, request.path, status, err)
			}
			took = append(took, time.Since(begin))
		}
	}
	slices.Sort(took)
	return took
}

// Another caller is served, and the server is ready, while many connections idle, send headers or bodies slowly, or do
// not read responses.
func TestServe_SlowAndIdleConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, "attacker "+oldToken+" write", "caller "+newToken+" write")
	server := start(t, "", "--db", "memory", "--rate", "0", "--tokens-file", path)
	address := strings.TrimPrefix(server.url, "http://")
	count := permitted(t, *connections)
	if testing.Short() {
		count = min(count, 100)
	}
	quiet := ordinary(t, server, "quiet")
	for i, a := range []attack{
		{name: "idle"},
		{name: "idle after a request", sent: "GET /healthz/ready HTTP/1.1\r\nHost: x\r\n\r\n"},
		{name: "slow headers", trickle: "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("a", 60)},
		{name: "slow bodies", trickle: strings.Repeat(" ", 60), sent: "POST /api/v1/relayers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + oldToken +
			"\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"},
		// They request the largest response that needs no token.
		{name: "slow readers", sent: strings.Repeat("GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 30)},
	} {
		t.Run(a.name, func(t *testing.T) {
			opened := a.begin(t, address, count)
			took := ordinary(t, server, fmt.Sprint("during-", i))
			t.Logf("%d connections: the median of a request is %v, the maximum %v; without them %v and %v", count,
				took[len(took)/2], took[len(took)-1], quiet[len(quiet)/2], quiet[len(quiet)-1])
			if a.name != "slow headers" {
				return
			}
			for _, connection := range opened[:20] { // they are closed
				_ = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
				if _, err := io.Copy(io.Discard, connection); err != nil && !isReset(err) {
					t.Fatalf("a connection with slow headers was still open: %v", err)
				}
			}
		})
	}
	ordinary(t, server, "afterwards")
}

func TestServe_ManyHeaders(t *testing.T) {
	server := start(t, token, "--db", "memory")
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	go func() {
		_, _ = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: x\r\n"+strings.Repeat("X-Flood: "+strings.Repeat("a", 1000)+"\r\n", 1000)+"\r\n")
	}()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("many headers returned %d", response.StatusCode)
	}
}

// isReset reports whether the server closed the connection before all was sent.
func isReset(err error) bool {
	failed, ok := err.(net.Error)
	return ok && !failed.Timeout()
}
