package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	defaultAddress = "127.0.0.1:8080"
	readinessPath  = "/healthz/ready"

	healthcheckTimeout = 5 * time.Second
)

func newHealthcheckCommand() *cobra.Command {
	var address string
	var useTLS bool
	command := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check that a server is ready",
		Long: `Healthcheck requests /healthz/ready from a server. It exits with status 0 if the server
is ready, and otherwise with status 1 after at most 5 seconds. With --tls it also fails if
the certificate has expired. It needs no token, and runs in a container that has neither a
shell nor curl.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if !isAddress(address) {
				return errors.New("--addr must be host:port")
			}
			if err := checkReady(command.Context(), address, useTLS); err != nil {
				return fmt.Errorf("%s is not ready: %w", address, err)
			}
			command.Println("ready")
			return nil
		},
	}
	command.Flags().StringVar(&address, "addr", defaultAddress, "`host:port` of the server")
	command.Flags().BoolVar(&useTLS, "tls", false, "use HTTPS, with any certificate that has not expired: the request contains no secret")
	return command
}

// checkReady sends the request straight to the address: proxies of the environment
// and redirects could report the state of another server.
func checkReady(ctx context.Context, address string, useTLS bool) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	target := &url.URL{Scheme: "http", Host: address, Path: readinessPath}
	if useTLS {
		target.Scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return errors.New("--addr is not valid")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no response within %s", healthcheckTimeout)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return checkExpiry(response.TLS)
	}
	const shownBytes = 200
	reason, err := io.ReadAll(io.LimitReader(response.Body, shownBytes))
	if err != nil {
		return fmt.Errorf("status %s: %w", response.Status, err)
	}
	return fmt.Errorf("status %s: %q", response.Status, strings.TrimSpace(string(reason)))
}

// checkExpiry fails if the certificate of a connection has expired. Clients would refuse
// it.
func checkExpiry(connection *tls.ConnectionState) error {
	if connection == nil {
		return nil
	}
	if expiry := connection.PeerCertificates[0].NotAfter; time.Now().After(expiry) {
		return fmt.Errorf("its certificate expired on %s", expiry.UTC().Format(time.RFC3339))
	}
	return nil
}
