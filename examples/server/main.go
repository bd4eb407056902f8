// Command server serves the relayer API over HTTP from one durable file.
//
//	API_KEY=$(openssl rand -hex 16) go run ./examples/server -addr 127.0.0.1:8080 -db example.db
//
// If API_KEY is not set, it generates a bearer token and prints it. For PostgreSQL,
// metrics, a web page and backups, use cmd/relayerd.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// drainTimeout bounds how long a shutdown waits for running requests.
const drainTimeout = 15 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)

	err := run(ctx, os.Args[1:], os.Getenv("API_KEY"))
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// run serves until ctx is done. Then it drains requests and closes the store.
func run(ctx context.Context, args []string, token string) (err error) {
	address, database, err := parseFlags(args)
	if err != nil {
		return err
	}
	// The port is opened before the file, so that a failed start creates no file.
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w (choose another address with -addr)", err)
	}
	defer listener.Close()
	store, err := openStore(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	manager, err := relayer.New(store)
	if err != nil {
		return err
	}
	isGenerated := token == ""
	if isGenerated {
		token = rand.Text()
	}
	authenticate, err := httpapi.Tokens(map[string][]string{"operator": {token}})
	if err != nil {
		return fmt.Errorf("API_KEY: %w", err)
	}
	api, err := httpapi.New(manager, authenticate, httpapi.WithLogger(logger))
	if err != nil {
		return err
	}
	if isGenerated {
		printToken(token, listener.Addr())
	}
	return serve(ctx, listener, routes(ctx, api, store), api.Drain, logger)
}

func parseFlags(args []string) (address, database string, err error) {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.StringVar(&address, "addr", "127.0.0.1:8080", "`host:port` to listen on")
	flags.StringVar(&database, "db", "example.db", "database `file`, created if missing; memory stores nothing on disk")

	// By default, package flag prints the error and the usage as well.
	flags.SetOutput(io.Discard)
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stdout)
		flags.Usage()
		return "", "", err
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case database == "":
		err = errors.New("-db is empty")
	case strings.Contains(database, "://"):
		err = errors.New("-db must be a file; cmd/relayerd can use PostgreSQL")
	}
	if err != nil {
		return "", "", fmt.Errorf("%w (-h lists the flags)", err)
	}
	return address, database, nil
}

// store is a relayer.Store with a life cycle.
type store interface {
	relayer.Store
	Ready(context.Context) error
	Close() error
}

func openStore(ctx context.Context, database string) (store, error) {
	if database == "memory" {
		return inMemory{memory.New()}, nil
	}
	return bolt.Open(ctx, database)
}

// inMemory is a memory store, which is always ready and needs no close.
type inMemory struct{ *memory.Store }

func (inMemory) Ready(context.Context) error { return nil }
func (inMemory) Close() error                { return nil }

func printToken(token string, address net.Addr) {
	fmt.Printf("API_KEY is not set. The bearer token of this run is %s\n\n", token)
	fmt.Printf("  curl -H 'Authorization: Bearer %s' http://%s/api/v1/relayers\n\n", token, address)
}

// routes adds health checks to the API. They need no token.
func routes(ctx context.Context, api http.Handler, store store) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /healthz/live", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, http.StatusOK, "live")
	})
	mux.HandleFunc("GET /healthz/ready", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case ctx.Err() != nil:
			writeHealth(w, http.StatusServiceUnavailable, "stopping")
		case store.Ready(r.Context()) != nil:
			writeHealth(w, http.StatusServiceUnavailable, "store unavailable")
		default:
			writeHealth(w, http.StatusOK, "ready")
		}
	})
	return mux
}

func writeHealth(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// serve handles requests until ctx is done. Then it calls drain, which ends the
// streams, and waits for the running requests.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, drain func(), logger *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(drain)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	logger.Info("serving", "address", listener.Addr().String())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping", "timeout", drainTimeout.String())
	draining, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := server.Shutdown(draining); err != nil {
		return errors.Join(fmt.Errorf("requests still running after %s: %w", drainTimeout, err), server.Close())
	}
	logger.Info("stopped")
	return nil
}
