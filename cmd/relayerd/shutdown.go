package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	drainTimeout   = 15 * time.Second // bounds the wait for running requests
	requestTimeout = time.Second      // bounds the wait for the requests of accepted connections
)

// httpServer is an HTTP server that stops without failing a request that it has accepted.
type httpServer struct {
	*http.Server
	delay  time.Duration // between the signal and the end of the listener
	drain  func()        // ends the streams
	logger *slog.Logger
}

// serve handles requests until ctx is done. Then the server accepts connections for the
// delay, so that load balancers see that it is not ready. After it, the server waits for the
// running requests, and closes the connections that are left.
func (s httpServer) serve(ctx context.Context, listener net.Listener) error {
	unread := s.trackUnread(ctx)
	s.RegisterOnShutdown(s.drain)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	s.logger.Info("serving", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	if s.delay > 0 {
		s.logger.Info("draining", "delay", s.delay.String())
		time.Sleep(s.delay)
	}
	// Shutdown closes the connections of requests that have not reached the handler.
	_ = listener.Close()
	<-failed
	isUnread := func() (found bool) { unread.Range(func(_, _ any) bool { found = true; return false }); return found }
	for end := time.Now().Add(requestTimeout); isUnread() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.logger.Info("stopping", "timeout", drainTimeout.String())
	draining, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := s.Shutdown(draining); err != nil {
		s.logger.Warn("connections closed: their requests were still running", "timeout", drainTimeout.String(), "error", err.Error())
		_ = s.Close() // the listener is closed already
	}
	s.logger.Info("stopped")
	return nil
}

type connectionKey struct{}

// trackUnread returns the connections whose first request has not reached the handler. Once ctx
// is done, each connection closes after its next response. Idle connections stay open until
// then: a request may be on its way.
func (s httpServer) trackUnread(ctx context.Context) *sync.Map {
	unread, handler := new(sync.Map), s.Handler
	s.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		unread.Store(connection, nil)
		return context.WithValue(ctx, connectionKey{}, connection)
	}
	s.ConnState = func(connection net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			unread.Delete(connection)
		}
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unread.Delete(r.Context().Value(connectionKey{}))
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
	return unread
}

// activated returns the socket that systemd passes to the process, or nil. systemd keeps it open
// during a restart, so that connections wait for the next process.
func activated() (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	if os.Getenv("LISTEN_FDS") != "1" {
		return nil, errors.New("systemd passes several sockets: the unit of the socket must have one ListenStream")
	}
	const firstSocket = 3
	file := os.NewFile(firstSocket, "socket")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("the socket of systemd: %w", err)
	}
	return listener, nil
}
