package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// drainTimeout bounds the wait for running requests.
	drainTimeout = 15 * time.Second

	// bodyTimeout bounds how long a stopping server waits for the rest of a request body.
	bodyTimeout = 3 * time.Second

	// requestTimeout bounds how long a stopping server waits for the requests of connections
	// that it has just accepted.
	requestTimeout = time.Second

	// unreadTimeout bounds how long a response waits for the rest of a body that its handler
	// does not read.
	unreadTimeout = time.Second
)

// httpServer is an HTTP server that stops without failing a request.
type httpServer struct {
	*http.Server
	delay  time.Duration  // between the first signal and the end of the listener
	drain  func()         // ends the streams
	end    chan os.Signal // the second value ends the delay
	logger *slog.Logger
}

// serve handles requests until ctx is done. Then the server accepts connections for the
// delay, so that load balancers see that it is not ready. After it, the server waits for the
// running requests, and closes the connections that are left.
func (s httpServer) serve(ctx context.Context, listener net.Listener) error {
	closing, closeListener := context.WithCancel(context.Background())
	defer closeListener()
	s.Handler = endKeepAlive(ctx, limitBodies(closing, s.Handler))
	unread := trackUnread(s.Server)
	s.RegisterOnShutdown(s.drain)
	s.RegisterOnShutdown(closeListener)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	s.logger.Info("serving", "address", listener.Addr().String())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.awaitDelay()
	// Shutdown closes the connections of requests that have not reached the handler.
	_ = listener.Close()
	<-failed
	unread.await()
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

// unreadConnections are those whose first request has not reached the handler.
type unreadConnections struct{ sync.Map }

type connectionKey struct{}

func trackUnread(s *http.Server) *unreadConnections {
	unread, handler := new(unreadConnections), s.Handler
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
		handler.ServeHTTP(w, r)
	})
	return unread
}

// await waits until there are none, for at most requestTimeout.
func (u *unreadConnections) await() {
	for end := time.Now().Add(requestTimeout); !u.isEmpty() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (u *unreadConnections) isEmpty() bool {
	for range u.Range {
		return false
	}
	return true
}

// awaitDelay waits for the delay, or until the second signal. A later signal ends the
// process at once.
func (s httpServer) awaitDelay() {
	defer signal.Stop(s.end)
	if s.delay > 0 {
		s.logger.Info("draining", "delay", s.delay.String())
	}
	passed := time.After(s.delay)
	for range endSignals {
		select {
		case <-s.end:
		case <-passed:
			return
		}
	}
}

// endKeepAlive closes each connection after its next response once ctx is done. Idle
// connections stay open: a request may be on its way.
func endKeepAlive(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// limitBodies bounds how long clients may take to send a body once ctx is done, and after
// the handler has returned.
func limitBodies(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		body := &requestBody{ReadCloser: r.Body, control: http.NewResponseController(w)}
		stop := context.AfterFunc(ctx, func() { body.endWithin(bodyTimeout) })
		// net/http needs its own body in its own request.
		r = r.WithContext(r.Context())
		r.Body = body
		next.ServeHTTP(w, r)
		stop()
		body.endWithin(unreadTimeout)
	})
}

// requestBody records whether a body was read to its end.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
	isRead  atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.isRead.Store(true)
	}
	return n, err
}

// endWithin sets the deadline of a body that was not read to its end. The next request of
// the connection has its own deadline.
func (b *requestBody) endWithin(timeout time.Duration) {
	if !b.isRead.Load() {
		_ = b.control.SetReadDeadline(time.Now().Add(timeout))
	}
}
