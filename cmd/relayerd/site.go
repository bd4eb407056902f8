package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/page"
)

// site adds the web page, health checks, metrics and backups to the API. The page and the health
// checks need no token and show no relayer. The API handles every other path and method: a ServeMux
// would respond to some of them in plain text.
func (s *server) site(ctx context.Context, api http.Handler) http.Handler {
	handlers := map[string]http.Handler{
		"/":             page.Handler("api/v1", page.WithName(s.name)),
		"/healthz/live": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, http.StatusOK, "live") }),
		readinessPath:   readiness(ctx, s.store),
		"/metrics":      s.publicMetrics(api),
		backupPath:      s.download(api),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler := handlers[r.URL.Path]
		if strings.HasPrefix(r.URL.Path, "/assets/") {
			handler = handlers["/"]
		}
		if handler == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
			handler = api
		}
		handler.ServeHTTP(w, r)
	})
}

const (
	defaultAddress = "127.0.0.1:8080"
	readinessPath  = "/healthz/ready"

	probeInterval      = time.Second
	probeTimeout       = 3 * time.Second // shorter than the timeout of a health check
	healthcheckTimeout = 5 * time.Second
)

// readiness reports whether a load balancer should send requests here: not after ctx is done, and
// not while the store is unavailable. If the store can report that it takes writes, readiness
// requires it. The store is asked once in an interval: requests need no token.
func readiness(ctx context.Context, store relayer.Store) http.Handler {
	ready := func(ctx context.Context) error {
		_, err := store.List(ctx, relayer.StoreQuery{})
		return err
	}
	if writable, ok := store.(interface{ Ready(context.Context) error }); ok {
		ready = writable.Ready
	}
	var mu sync.Mutex
	var asked time.Time
	var err error
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(asked) >= probeInterval {
			ctx, cancel := context.WithTimeout(ctx, probeTimeout)
			err, asked = ready(ctx), time.Now()
			cancel()
		}
		switch {
		case ctx.Err() != nil:
			writeHealth(w, http.StatusServiceUnavailable, "stopping")
		case err != nil:
			writeHealth(w, http.StatusServiceUnavailable, "store unavailable")
		default:
			writeHealth(w, http.StatusOK, "ready")
		}
	})
}

func writeHealth(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

func newHealthcheckCommand() *cobra.Command {
	var address string
	var useTLS bool
	command := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check that a server is ready",
		Long: `Healthcheck requests /healthz/ready from a server. It exits with status 0 if the server
is ready, and otherwise with status 1 after at most 5 seconds. It needs no token, and runs
in a container that has neither a shell nor curl.`,
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
	command.Flags().BoolVar(&useTLS, "tls", false, "use HTTPS, with any certificate: the request contains no secret")
	return command
}

// checkReady sends the request straight to the address: proxies of the environment
// and redirects could report the state of another server.
func checkReady(ctx context.Context, address string, useTLS bool) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	scheme := "http://"
	if useTLS {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+address+readinessPath, nil)
	if err != nil {
		return errors.New("--addr is not valid")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
