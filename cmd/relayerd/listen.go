package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
)

// activated returns the socket that systemd passes to the process, or nil. systemd keeps it open
// during a restart, so that connections wait for the next process.
func activated() (net.Listener, error) {
	listeners, err := activation.Listeners()
	if err != nil || len(listeners) == 0 {
		return nil, err
	}
	if len(listeners) > 1 {
		return nil, errors.New("systemd passes several sockets: the unit of the socket must have one ListenStream")
	}
	if listeners[0] == nil {
		return nil, errors.New("the socket of systemd must be a ListenStream")
	}
	return listeners[0], nil
}

// listen opens the port of a flag.
func listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w (choose another address with %s)", err, flag)
	}
	return listener, nil
}

func newServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// The handler responds to "OPTIONS *" as to any other request.
		DisableGeneralOptionsHandler: true,

		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// withTLS returns a listener for HTTPS with the current certificate of --tls-cert, or the listener
// itself without one.
func (s *server) withTLS(ctx context.Context, listener net.Listener) (net.Listener, error) {
	if s.scheme = "http"; s.tlsCert == "" {
		return listener, nil
	}
	s.scheme = "https"
	load := func(context.Context) error {
		pair, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w: name PEM files of a certificate and its key", err)
		}
		warnIfReadable(s.logger, "private key", s.tlsKey)
		if expiry := pair.Leaf.NotAfter; time.Now().After(expiry) {
			s.logger.Warn("the certificate has expired: clients refuse to connect", "expired", expiry)
		}
		s.certificate.Store(&pair)
		return nil
	}
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil }
	config := &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	return tls.NewListener(listener, config), s.reloading(ctx, "--tls-cert", load, s.tlsCert, s.tlsKey)
}

const (
	drainTimeout = 15 * time.Second // bounds the wait for running requests

	// requestTimeout is the time for the requests of accepted connections to arrive.
	requestTimeout = time.Second
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
	s.Handler = closingConnections(ctx, s.Handler)
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
	_ = listener.Close()
	<-failed
	// Shutdown closes accepted connections whose request has not been read. Without a delay, the
	// operator asks for a stop at once.
	time.Sleep(min(s.delay, requestTimeout))
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

// closingConnections closes each connection after its next response, once ctx is done. Idle
// connections stay open until then: a request may be on its way.
func closingConnections(ctx context.Context, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}
