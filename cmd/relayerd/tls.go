package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// certificate is a TLS certificate that is reloaded when its files change.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	loaded  [2]fileVersion // of the files that were loaded last, also if they were invalid
	checked time.Time
}

// fileVersion changes when a file is replaced or written.
type fileVersion struct {
	modified time.Time
	size     int64
}

// versionOf returns the zero version of a file that cannot be examined.
func versionOf(path string) fileVersion {
	info, err := os.Stat(path)
	if err != nil {
		return fileVersion{}
	}
	return fileVersion{info.ModTime(), info.Size()}
}

// onChange calls reload after SIGHUP, and when a file has changed since it had a version, until
// ctx is done. In a container nothing may be able to send a signal.
func (s *server) onChange(ctx context.Context, path string, since fileVersion, reload func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	s.onClose(func() { signal.Stop(signals) })
	s.inBackground(ctx, func(ctx context.Context) {
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for {
			version := since
			select {
			case <-ctx.Done():
				return
			case <-signals:
				since = versionOf(path)
			case <-ticker.C:
				if since = versionOf(path); since == version {
					continue
				}
			}
			reload()
		}
	})
}

// checkInterval bounds how often files are examined.
const checkInterval = time.Second

// openCertificate returns nil without --tls-cert.
func openCertificate(flags config, logger *slog.Logger) (*certificate, error) {
	if flags.tlsCert == "" {
		return nil, nil
	}
	c := &certificate{certFile: flags.tlsCert, keyFile: flags.tlsKey, logger: logger}
	if err := c.load(); err != nil {
		return nil, err
	}
	warnIfReadable(logger, "private key", c.keyFile)
	return c, nil
}

// load replaces the certificate if both files are valid and belong together.
func (c *certificate) load() error {
	c.checked = time.Now()
	versions, err := c.versions()
	if err != nil {
		return err
	}
	c.loaded = versions
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	c.current = &pair
	if expiry := pair.Leaf.NotAfter; time.Now().After(expiry) {
		c.logger.Warn("the certificate has expired: clients refuse to connect", "expired", expiry)
	}
	return nil
}

func (c *certificate) expiry() time.Time {
	current, _ := c.get(nil) // never fails
	return current.Leaf.NotAfter
}

func (c *certificate) versions() (versions [2]fileVersion, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return versions, inputError("--tls-cert, --tls-key", file, "name existing PEM files", err)
		}
		versions[i] = fileVersion{info.ModTime(), info.Size()}
	}
	return versions, nil
}

// get is a function for [tls.Config.GetCertificate]. While the files are invalid,
// such as between the writes of both, the earlier certificate stays in use.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < checkInterval {
		return c.current, nil
	}
	c.checked = time.Now()
	if versions, err := c.versions(); err == nil && versions == c.loaded {
		return c.current, nil
	}
	if err := c.load(); err != nil {
		c.logger.Error("certificate not reloaded: the earlier one stays in use", "error", err.Error())
	} else {
		c.logger.Info("certificate reloaded")
	}
	return c.current, nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}
