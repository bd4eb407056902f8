package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"
)

// certificate is the current TLS certificate.
type certificate struct {
	atomic.Pointer[tls.Certificate]
}

// openCertificate returns nil without --tls-cert.
func (s *server) openCertificate(ctx context.Context) (*certificate, error) {
	if s.tlsCert == "" {
		return nil, nil
	}
	c := new(certificate)
	load := func(context.Context) error {
		pair, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w: name PEM files of a certificate and its key", err)
		}
		warnIfReadable(s.logger, "private key", s.tlsKey)
		if expiry := pair.Leaf.NotAfter; time.Now().After(expiry) {
			s.logger.Warn("the certificate has expired: clients refuse to connect", "expired", expiry)
		}
		c.Store(&pair)
		return nil
	}
	return c, s.reloading(ctx, "--tls-cert", load, s.tlsCert, s.tlsKey)
}

func (c *certificate) config() *tls.Config {
	get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Load(), nil }
	return &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}
