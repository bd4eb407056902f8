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

// attackers are connections that want to keep the server busy for nothing.
type attackers struct {
	t       *testing.T
	address string
	open    []net.Conn
}

func (a *attackers) dial(count int) []net.Conn {
	a.t.Helper()
	var dialled []net.Conn
	for range count {
		connection, err := net.Dial("tcp", a.address)
		if err != nil {
			a.t.Fatalf("after %d connections: %v", len(a.open), err)
		}
		a.open = append(a.open, connection)
		dialled = append(dialled, connection)
	}
	return dialled
}

func (a *attackers) close() {
	for _, connection := range a.open {
		_ = connection.Close()
	}
}

// trickle sends a byte now and then until the connection breaks or is enough.
func trickle(connection net.Conn, text string, enough <-chan struct{}) {
	for {
		for i := range len(text) {
			if _, err := io.WriteString(connection, text[i:i+1]); err != nil {
				return
			}
			select {
			case <-enough:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// idleConnections is as many as the process may have open, up to what the test
// wants.
func idleConnections(t *testing.T, wanted int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	possible := int(min(limit.Cur, 1<<20)) - 1000
	if possible < wanted {
		t.Logf("%d idle connections, as this system allows no more", possible)
	}
	return max(1, min(possible, wanted))
}

// The server goes on serving others while connections idle, trickle their
// headers or their bodies, do not read what they ask for, or flood it with
// headers.
func TestOthersAreServedUnderAttack(t *testing.T) {
	server := start(t, token, "--db", "memory", "--rate", "0")
	enough := make(chan struct{})
	attack := &attackers{t: t, address: strings.TrimPrefix(server.url, "http://")}
	var trickling sync.WaitGroup
	defer trickling.Wait()
	defer attack.close()
	defer close(enough)

	attack.dial(idleConnections(t, 10_000))
	slowHeaders := attack.dial(200)
	for _, connection := range slowHeaders {
		trickling.Go(func() {
			trickle(connection, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", enough)
		})
	}
	for _, connection := range attack.dial(100) {
		const head = "POST /api/v1/relayers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
		if _, err := io.WriteString(connection, head); err != nil {
			t.Fatal(err)
		}
		trickling.Go(func() { trickle(connection, `{"name":"`, enough) })
	}
	for _, connection := range attack.dial(1100) {
		// It asks for the largest answer that needs no token, and does not read it.
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
		t.Errorf("a flood of headers was answered %d", response.StatusCode)
	}

	definition := `{"id":"r-%d","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`
	for i := range 50 {
		if status, body := server.do("POST", collection, fmt.Sprintf(definition, i)); status != http.StatusCreated {
			t.Fatalf("a create was answered %d: %s", status, body)
		}
		if status, _ := server.do("GET", fmt.Sprintf("%s/r-%d", collection, i), ""); status != http.StatusOK {
			t.Fatalf("a get was answered %d", status)
		}
	}
	// Whoever does not get through its headers is not waited for.
	for _, connection := range slowHeaders[:20] {
		_ = connection.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, connection); err != nil && !isReset(err) {
			t.Fatalf("a connection that trickles its headers was still open: %v", err)
		}
	}
	if status, _ := server.do("GET", collection, ""); status != http.StatusOK {
		t.Errorf("after the attack a list was answered %d", status)
	}
}

// isReset tells whether the server has hung up on a sender that went on.
func isReset(err error) bool {
	failed, ok := err.(net.Error)
	return ok && !failed.Timeout()
}
