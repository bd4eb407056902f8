package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// During the drain delay load balancers see that the server is not ready, and every request
// still works. A second signal ends the process.
func TestShutdown_DrainDelay(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory", "--drain-delay", "1h")
	keptAlive := &http.Client{Transport: new(http.Transport)}
	if status, err := server.statusWith(keptAlive, "GET", collection, token, ""); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, error %v", status, err)
	}
	signalProcess(t, server)
	server.output.awaitText(t, "msg=draining delay=1h", 1)
	for path, want := range map[string]int{readinessPath: http.StatusServiceUnavailable, "/healthz/live": http.StatusOK} {
		response, err := keptAlive.Get(server.url + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want || !response.Close {
			t.Errorf("%s returned %d, closes %t, want %d and a connection that closes", path, response.StatusCode, response.Close, want)
		}
	}
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	signalProcess(t, server)
	if err := server.command.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("after the second signal: error %v", err)
	}
}

func signalProcess(t *testing.T, p *process) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
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

func (l pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.connections <- server
	return client
}

// A client that sends or reads slowly delays a stop only as long as the server allows, and
// the stop is no failure.
func TestShutdown_SlowClients(t *testing.T) {
	readBody := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) })
	block := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	for name, c := range map[string]struct {
		handler http.Handler
		request string
		atMost  time.Duration
		isWarn  bool
	}{
		"body byte by byte":           {readBody, post, drainTimeout, true},
		"request that does not end":   {block, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", drainTimeout, true},
		"header that is not complete": {block, "GET / HTTP/1.1\r\n", 6 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				logger := slog.New(slog.NewTextHandler(&log, nil))
				closed, closeListener := context.WithCancel(t.Context())
				listener := pipeListener{make(chan net.Conn), closed, closeListener}
				ctx, stop := context.WithCancel(t.Context())
				stopped := make(chan error, 1)
				server := httpServer{newServer(c.handler, logger), 0, func() {}, logger}
				go func() { stopped <- server.serve(ctx, listener) }()
				client := listener.dial()
				var running sync.WaitGroup
				defer running.Wait()
				defer client.Close()
				if _, err := io.WriteString(client, c.request); err != nil {
					t.Fatal(err)
				}
				running.Go(func() { _, _ = io.Copy(io.Discard, client) })
				running.Go(func() {
					for err := error(nil); err == nil && strings.HasPrefix(c.request, "POST"); time.Sleep(100 * time.Millisecond) {
						_, err = io.WriteString(client, " ")
					}
				})
				synctest.Wait()
				began := time.Now()
				stop()
				if err := <-stopped; err != nil || time.Since(began) > c.atMost {
					t.Errorf("the stop took %v, want at most %v, error %v", time.Since(began), c.atMost, err)
				}
				if warned := strings.Contains(log.String(), "level=WARN"); warned != c.isWarn {
					t.Errorf("log %s", log.String())
				}
			})
		})
	}
}

// A listener that fails is an error.
func TestShutdown_ListenerFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	logger := slog.New(slog.DiscardHandler)
	server := httpServer{newServer(http.NotFoundHandler(), logger), 0, func() {}, logger}
	if err := server.serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want net.ErrClosed", err)
	}
}
