// Command server serves the relayer API over HTTP from one durable file.
//
//	export API_KEY=$(openssl rand -hex 16)
//	go run ./examples/server -addr 127.0.0.1:8080 -db example.db
//
// For PostgreSQL, health checks, metrics, a web page and backups, use cmd/relayerd.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
)

func main() {
	address := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	database := flag.String("db", "example.db", "database `file`, created if missing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, *address, *database, os.Getenv("API_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, "server:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// run serves until ctx is done. Then it gives running requests 15 seconds, and closes the store.
func run(ctx context.Context, address, database, token string) (err error) {
	authenticate, err := httpapi.Tokens(map[string][]string{"operator": {token}})
	if err != nil {
		return fmt.Errorf("API_KEY: %w", err)
	}
	// The port is opened before the file, so that a failed start creates no file.
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w (choose another address with -addr)", err)
	}
	defer listener.Close()
	store, err := bolt.Open(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	manager, err := relayer.New(store)
	if err != nil {
		return err
	}
	api, err := httpapi.New(manager, authenticate, httpapi.WithLogger(logger))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	server.RegisterOnShutdown(api.Drain) // ends the change streams
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	logger.Info("serving", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := server.Shutdown(draining); err != nil {
		return errors.Join(fmt.Errorf("requests are still running: %w", err), server.Close())
	}
	logger.Info("stopped")
	return nil
}
