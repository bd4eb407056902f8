package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// During the drain delay load balancers see that the server is not ready, and every request
// still works. A second signal ends the process.
func TestShutdown_DrainDelay(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "alice "+token+" write", "bob "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens, "--drain-delay", "1h")
	keptAlive := &http.Client{Transport: new(http.Transport)}
	if response, _, err := server.try(keptAlive, "GET", collection, token, ""); err != nil || response.StatusCode != http.StatusOK || response.Close {
		t.Fatalf("response %v, error %v", response, err)
	}
	server.signal(syscall.SIGTERM)
	server.output.awaitText(t, "msg=draining delay=1h", 1)
	for path, want := range map[string]int{readinessPath: http.StatusServiceUnavailable, "/healthz/live": http.StatusOK} {
		response, _, err := server.try(keptAlive, "GET", path, "", "")
		if err != nil || response.StatusCode != want || !response.Close {
			t.Errorf("%s returned %v, error %v, want %d and a connection that closes", path, response, err, want)
		}
	}
	server.expect("POST", collection, token, definition, http.StatusCreated)
	writeTokens(t, tokens, "alice "+token+" write")
	server.output.awaitText(t, `file reloaded" flag=--tokens-file`, 1)
	server.expect("GET", collection, oldToken, "", http.StatusUnauthorized)
	server.signal(syscall.SIGTERM)
	if err := server.command.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("after the second signal: error %v", err)
	}
}

// Under load, SIGTERM loses no request that the server has accepted: what is stored was
// acknowledged, and the reverse. An open stream does not delay the stop.
func TestShutdown_UnderLoad(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database, "--drain-delay", "300ms")
	var acknowledged sync.Map
	var clients sync.WaitGroup
	var count atomic.Int64
	for client := range 16 {
		// Half of the clients open a connection for each request.
		transport := &http.Transport{DisableKeepAlives: client%2 == 0}
		t.Cleanup(transport.CloseIdleConnections)
		clients.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("r-%d-%d", client, i)
				response, _, err := server.try(&http.Client{Transport: transport}, "POST", collection, token, definitionOf(id))
				if err != nil {
					return
				}
				if response.StatusCode != http.StatusCreated {
					t.Errorf("create of %s returned %d", id, response.StatusCode)
				}
				acknowledged.Store(id, true)
				count.Add(1)
			}
		})
	}
	if !await(func() bool { return count.Load() > 200 }) {
		t.Fatalf("only %d creates: %s", count.Load(), server.output)
	}
	stream := mustGet(server.send(t.Context(), http.DefaultClient, "GET", collection+":watch", token, ""))(t)
	defer stream.Body.Close()
	server.stop()
	clients.Wait()
	if strings.Contains(server.output.String(), "connections closed") {
		t.Errorf("the stream delayed the stop: %s", server.output)
	}
	stored := contentOf(t, database)
	for _, record := range stored {
		if _, ok := acknowledged.Load(record.ID); !ok {
			t.Errorf("%s is stored, but its client got no response", record.ID)
		}
	}
	if int64(len(stored)) != count.Load() {
		t.Errorf("%d relayers are stored, and %d were acknowledged", len(stored), count.Load())
	}
}

// pipeListener accepts connections in memory, which synctest needs.
type pipeListener struct {
	connections chan net.Conn
	closed      context.Context
	close       func()
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case connection := <-l.connections:
		return connection, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

func (l pipeListener) Close() error   { l.close(); return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A request that is running when a server stops has as long as the server allows, and not longer.
// The stop is no failure.
func TestShutdown_SlowClients(t *testing.T) {
	readBody := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	block := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, c := range map[string]struct {
		handler http.Handler
		request string
		atMost  time.Duration
		isWarn  bool
	}{
		"body byte by byte":           {readBody, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", 15 * time.Second, true},
		"request that does not end":   {block, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 15 * time.Second, true},
		"header that is not complete": {block, "GET / HTTP/1.1\r\n", 6 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := new(output)
				logger := slog.New(slog.NewTextHandler(log, nil))
				closed, closeListener := context.WithCancel(t.Context())
				listener := pipeListener{make(chan net.Conn), closed, closeListener}
				ctx, stop := context.WithCancel(t.Context())
				stopped := make(chan error, 1)
				go func() { stopped <- serveUntil(ctx, newServer(c.handler, logger), listener, 0, logger) }()
				client, accepted := net.Pipe()
				listener.connections <- accepted
				var running sync.WaitGroup
				defer running.Wait()
				defer client.Close()
				mustGet(io.WriteString(client, c.request))(t)
				running.Go(func() { _, _ = io.Copy(io.Discard, client) })
				running.Go(func() {
					for err := error(nil); err == nil && strings.HasPrefix(c.request, "POST"); time.Sleep(100 * time.Millisecond) {
						_, err = io.WriteString(client, " ")
					}
				})
				synctest.Wait()
				began := time.Now()
				stop()
				err := <-stopped
				if took := time.Since(began); err != nil || took > c.atMost || c.isWarn && took < c.atMost {
					t.Errorf("the stop took %v, want at most %v, error %v", took, c.atMost, err)
				}
				if warned := strings.Contains(log.String(), "level=WARN"); warned != c.isWarn {
					t.Errorf("log %s", log)
				}
			})
		})
	}
}

// A listener that fails is an error.
func TestShutdown_ListenerFails(t *testing.T) {
	listener := mustGet(net.Listen("tcp", "127.0.0.1:0"))(t)
	listener.Close()
	logger := slog.New(slog.DiscardHandler)
	if err := serveUntil(t.Context(), newServer(http.NotFoundHandler(), logger), listener, 0, logger); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want net.ErrClosed", err)
	}
}

// A connection that sends its header slowly is closed, and too many headers are refused. Meanwhile
// others are served.
func TestServer_HeaderLimits(t *testing.T) {
	t.Parallel()
	server := startMemory(t)
	slow := mustGet(net.Dial("tcp", server.address()))(t)
	defer slow.Close()
	mustGet(io.WriteString(slow, "GET / HTTP/1.1\r\nHost: x\r\n"))(t)
	server.expect("GET", collection, token, "", http.StatusOK)
	flood := strings.Repeat("a", 100<<10)
	if response, _, err := server.try(http.DefaultClient, "GET", collection, token, "", "X-Flood", flood); err != nil || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("many headers returned %v, error %v", response, err)
	}
	must(t, slow.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := io.Copy(io.Discard, slow); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection with slow headers is still open: %v", err)
	}
	server.stop()
}

// A signal ends a start that waits for a database.
func TestShutdown_DuringStart(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	command := serverCommand(token, "--db", "postgres://u@"+silent.Addr().String()+"/d?sslmode=disable")
	log := new(output)
	command.Stderr = log
	must(t, command.Start())
	connection, err := silent.Accept()
	must(t, err)
	defer connection.Close()
	must(t, command.Process.Signal(syscall.SIGTERM))
	if err := command.Wait(); err != nil || !strings.Contains(log.String(), "stopped during the start") {
		t.Errorf("error %v: %s", err, log)
	}
}
