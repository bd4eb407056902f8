package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer/page"
	"github.com/go-relayer/relayer/store/bolt"
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
		backupPath:      s.backups(api),
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
// not while the store is not ready. The store is asked once in an interval: requests need no
// token.
func readiness(ctx context.Context, store interface{ Ready(context.Context) error }) http.Handler {
	probe := cached(probeInterval, func() error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		return store.Ready(ctx)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		err := probe()
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
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, text, status) // or any other status
}

func newHealthcheckCommand() *cobra.Command {
	var address string
	var useTLS bool
	command := &cobra.Command{Use: "healthcheck", Short: "Check that a server is ready",
		Long: `Healthcheck requests /healthz/ready from a server. It exits with status 0 if the server
is ready, and otherwise with status 1 after at most 5 seconds. It needs no token, and runs
in a container that has neither a shell nor curl.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if !isAddress(address) {
				return errors.New("--addr must be host:port")
			}
			url := url.URL{Scheme: "http", Host: address, Path: readinessPath}
			if useTLS {
				url.Scheme = "https"
			}
			if err := checkReady(command.Context(), url.String()); err != nil {
				return fmt.Errorf("%s is not ready: %w", address, err)
			}
			command.Println("ready")
			return nil
		}}
	command.Flags().StringVar(&address, "addr", defaultAddress, "`host:port` of the server")
	command.Flags().BoolVar(&useTLS, "tls", false, "use HTTPS, with any certificate: the request contains no secret")
	return command
}

// checkReady sends the request straight to the address: proxies of the environment
// and redirects could report the state of another server.
func checkReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return errors.New("--addr is not valid")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusBadRequest:
		return fmt.Errorf("status %s: %s", response.Status, useHTTPS)
	}
	return fmt.Errorf("status %s", response.Status)
}

const (
	// backupPath responds with a copy of the database file.
	backupPath = "/backup"

	// backupTimeout bounds the time to wait for other copies and to write a copy, and the time to
	// send it.
	backupTimeout = time.Hour

	// backupPartTimeout bounds the time to send a MiB: a client that stops must not keep others waiting.
	backupPartTimeout = time.Minute
)

// backups returns the handler of [backupPath], for tokens with the role backup. For all others,
// and with another store, the path does not exist. It writes and sends one backup at a time: each
// needs as much space as the database.
func (s *server) backups(api http.Handler) http.Handler {
	file, isFile := s.store.(*bolt.Store)
	slot := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, granted := s.tokens.grantFor(r)
		if !isFile || !granted.mayBackUp() {
			api.ServeHTTP(w, r)
			return
		}
		logger := s.logger.With("principal", actor.ID, "address", s.trusted.clientAddress(r))
		logger.Info("backup requested") // the audit has each read of full RPC URLs before its response
		control, end := http.NewResponseController(w), time.Now().Add(backupTimeout)
		_, _ = control.SetReadDeadline(end), control.SetWriteDeadline(end)
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // a response without a body would look like an empty backup
		}
		// A reload may have removed the token during the wait.
		if _, granted = s.tokens.grantFor(r); !granted.mayBackUp() {
			api.ServeHTTP(w, r)
			return
		}
		if err := s.sendBackup(w, r, file); err != nil {
			logger.Error("backup failed", "error", err.Error())
		} else if r.Method != http.MethodHead {
			logger.Info("backup sent")
		}
	})
}

// sendBackup writes a backup next to the database, and sends it. It ignores Range: the next request
// would get a part of another backup.
func (s *server) sendBackup(w http.ResponseWriter, r *http.Request, from *bolt.Store) error {
	// A start removes files with this suffix of package bolt that are an hour old.
	path := fmt.Sprint(s.database, ".unfinished-", time.Now().UnixNano())
	var file *os.File
	err := from.Backup(r.Context(), path)
	if err == nil {
		file, err = os.Open(path)
		err = errors.Join(err, os.Remove(path)) // no file is left if the server is killed
	}
	if err != nil {
		http.Error(w, "the backup failed: see the log of the server", http.StatusInternalServerError)
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	for sending := time.Now(); r.Method != http.MethodHead && err == nil; {
		limit := min(backupPartTimeout, time.Until(sending.Add(backupTimeout)))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		_, err = io.CopyN(w, file, 1<<20)
	}
	if err == io.EOF { // the end of the file
		err = nil
	}
	return err
}
