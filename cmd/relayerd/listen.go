package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
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
	if len(listeners) > 1 || listeners[0] == nil {
		return nil, errors.New("the unit of the socket must have one ListenStream, and nothing else that listens")
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
		// The handler responds to "OPTIONS *" too.
		DisableGeneralOptionsHandler: true,

		ErrorLog: log.New(&errorLog{logger: logger}, "", 0),
	}
}

// errorLog logs the errors of a [http.Server]. Clients without a token could fill the log with errors of
// TLS and HTTP/2. So they have at most one line a second, with the number of errors since the line
// before. A panic and an error of Accept always have a line.
type errorLog struct {
	logger *slog.Logger
	logged time.Time
	count  int
}

// Write logs one error. A [log.Logger] calls it from one goroutine at a time.
func (l *errorLog) Write(line []byte) (int, error) {
	l.count++
	begins := func(text string) bool { return bytes.HasPrefix(line, []byte(text)) } // a client can choose the rest
	isOwn := begins("http: panic serving ") || begins("http2: panic serving ") || begins("http: Accept error")
	if isOwn || time.Since(l.logged) >= time.Second {
		l.logger.Warn(strings.TrimSuffix(string(line), "\n"), "count", l.count)
		l.logged, l.count = time.Now(), 0
	}
	return len(line), nil
}

// withTLS returns a listener for HTTPS with the current certificate of --tls-cert, or the listener
// itself without one.
func (s *server) withTLS(ctx context.Context, listener net.Listener) (net.Listener, error) {
	if s.scheme = "http"; s.tlsCert == "" {
		return listener, nil
	}
	s.scheme = "https"
	load := func(context.Context) (tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
		if err != nil {
			return pair, fmt.Errorf("--tls-cert, --tls-key: %w: name PEM files of a certificate and its key", err)
		}
		warnIfReadable(s.logger, "private key", s.tlsKey)
		if expiry := pair.Leaf.NotAfter; time.Now().After(expiry) {
			s.logger.Warn("the certificate has expired: clients refuse to connect", "expired", expiry)
		}
		return pair, nil
	}
	var err error
	s.certificate, err = reloading(ctx, s, "--tls-cert", load, s.tlsCert, s.tlsKey)
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificate.Load(), nil }
	return tls.NewListener(listener, &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}), err
}

const (
	drainTimeout = 15 * time.Second // bounds the wait for running requests

	// requestTimeout is the time for the requests of accepted connections to arrive.
	requestTimeout = time.Second
)

// serveUntil serves until ctx is done, and gives the requests that it has accepted drainTimeout.
// During the delay it still accepts connections, and load balancers see that it is not ready.
// After the delay it waits for the running requests, and closes the connections that are left.
func serveUntil(ctx context.Context, s *http.Server, listener net.Listener, delay time.Duration, logger *slog.Logger) error {
	var running sync.WaitGroup
	s.Handler = closingConnections(ctx, s.Handler, &running)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	logger.Info("serving", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	if delay > 0 {
		logger.Info("draining", "delay", delay.String())
		time.Sleep(delay)
	}
	_ = listener.Close()
	<-failed
	// Shutdown closes accepted connections whose request has not been read. Without a delay, the
	// operator asks for a stop at once.
	time.Sleep(min(delay, requestTimeout))
	logger.Info("stopping", "timeout", drainTimeout.String())
	draining, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if s.Shutdown(draining) == nil {
		// It does not wait for a request over HTTP/2 whose client is gone, such as a pause of many.
		go func() { running.Wait(); cancel() }()
	}
	if <-draining.Done(); draining.Err() == context.DeadlineExceeded {
		logger.Warn("connections closed: their requests were still running", "timeout", drainTimeout.String())
		_ = s.Close() // the listener is closed already
	}
	logger.Info("stopped")
	return nil
}

// closingConnections closes each connection after its next request, once ctx is done. Idle
// connections stay open until then: a request may be on its way. It counts the running requests.
func closingConnections(ctx context.Context, handler http.Handler, running *sync.WaitGroup) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// proxies are the networks of proxies whose X-Forwarded-For header is trusted.
type proxies []netip.Prefix

func parseProxies(list string) (trusted proxies, err error) {
	for text := range strings.SplitSeq(list, ",") {
		network, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("--trusted-proxies must be a comma-separated list of networks, such as 10.0.0.0/8,::1")
		}
		trusted = append(trusted, network)
	}
	return trusted, nil
}

// parseNetwork parses a network or an address.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().Prefix(address.Unmap().BitLen())
	}
	network, err := netip.ParsePrefix(text)
	if err == nil && network.Addr().Is4In6() {
		return network, errors.New("a mapped network matches no address")
	}
	return network, err
}

// clientAddress is a function for [httpapi.WithClientAddress]. Each proxy appends
// the address that it received the request from. So the client is the last address
// that is not a trusted proxy; earlier ones may be forged.
func (p proxies) clientAddress(r *http.Request) string {
	client, err := parseHop(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		address, err := parseHop(strings.TrimSpace(hop))
		if err != nil || !slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(client) }) {
			break
		}
		client = address
	}
	return client.String()
}

// parseHop parses an address with or without a port. It removes the zone, and the prefix of an
// IPv4 address in IPv6 form.
func parseHop(text string) (netip.Addr, error) {
	withPort, err := netip.ParseAddrPort(text)
	address := withPort.Addr()
	if err != nil {
		address, err = netip.ParseAddr(text)
	}
	return address.Unmap().WithZone(""), err
}
