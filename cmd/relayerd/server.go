package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	promclient "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/observe/outcome"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/sealed"
)

// server has the parts of the command serve, which its open methods open one after the other.
type server struct {
	config
	apiKey         string
	stdout, stderr io.Writer
	logger         *slog.Logger

	managerOptions []relayer.Option
	apiOptions     []httpapi.Option
	keys           keysFile                         // empty without --keys
	trusted        proxies                          // empty without --trusted-proxies
	certificate    *atomic.Pointer[tls.Certificate] // nil without --tls-cert
	scheme         string                           // of the URL of the listener
	listener       net.Listener
	metrics        *promclient.Registry
	store          openedStore
	manager        *relayer.Manager
	tokens         tokensFile
	generated      string // the token generated for this run, if there is one

	closers []func()
}

// serve serves until ctx is done. Then it drains requests and closes the database.
func serve(ctx context.Context, c config, apiKey string, stdout, stderr io.Writer) error {
	s := &server{config: c, apiKey: apiKey, stdout: stdout, stderr: stderr}
	// SIGHUP without a file to reload, and the end of the process that reads the log, would end
	// this process.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	s.onClose(func() { signal.Reset(syscall.SIGHUP, syscall.SIGPIPE) })
	s.logger = slog.New(slog.NewTextHandler(s.stderr, nil))
	if s.logFormat == "json" {
		s.logger = slog.New(slog.NewJSONHandler(printableJSON{s.stderr}, nil))
	}
	ctx, cancel := context.WithCancel(ctx)
	s.onClose(cancel)
	defer s.close()
	// The ports are opened before the database: a taken port creates no file.
	for _, open := range []func(context.Context) error{s.openOptions, s.openAccess, s.openPorts, s.openStore, s.openManager} {
		err := open(ctx)
		if ctx.Err() != nil { // a signal during the start
			s.logger.Info("stopped during the start")
			return nil
		}
		if err != nil {
			return err
		}
	}
	api, err := httpapi.New(s.manager, s.tokens.authenticate, s.apiOptions...)
	if err != nil {
		return err
	}
	if s.generated != "" { // no other code prints a token
		fmt.Fprintf(s.stdout, "API_KEY is not set. Open %s://%s/ with the token of this run: %s\n", s.scheme, s.listener.Addr(), s.generated)
	}
	server := newServer(s.site(ctx, s.countResponses(api)), s.logger)
	server.RegisterOnShutdown(api.Drain) // ends the streams
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("%w (unset NOTIFY_SOCKET, unless systemd runs the server)", err)
	}
	return serveUntil(ctx, server, s.listener, s.drainDelay, s.logger)
}

// onClose adds what close calls, last added first.
func (s *server) onClose(release func()) { s.closers = append(s.closers, release) }

// inBackground runs a function until ctx is done or close is called.
func (s *server) inBackground(ctx context.Context, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	s.onClose(func() { cancel(); running.Wait() })
}

// sleep returns false if ctx is done before the time has passed.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}

// cached returns a function that calls get at most once in an interval, and returns its last result.
func cached[T any](interval time.Duration, get func() T) func() T {
	var mu sync.Mutex
	var called time.Time
	var result T
	return func() T {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(called) >= interval {
			result, called = get(), time.Now()
		}
		return result
	}
}

func (s *server) close() {
	for _, release := range slices.Backward(s.closers) {
		release()
	}
}

// openOptions reads the signers, the schema and the keys.
func (s *server) openOptions(ctx context.Context) (err error) {
	if err := s.openRules(ctx); err != nil {
		return err
	}
	s.apiOptions = []httpapi.Option{httpapi.WithRateLimit(float64(s.rate), 3*s.rate), httpapi.WithLogger(s.logger)} // a burst of 3 s
	if s.logLevel == "debug" {
		s.apiOptions = append(s.apiOptions, httpapi.WithRequestLog(s.logger))
	}
	if s.trustedProxies != "" {
		if s.trusted, err = parseProxies(s.trustedProxies); err != nil {
			return err
		}
		s.apiOptions = append(s.apiOptions, httpapi.WithClientAddress(s.trusted.clientAddress))
	}
	_, err = readKeys(s.keysFile)
	return err
}

// apiKeyName is the name of API_KEY, and of a generated token, in logs.
const apiKeyName = "api-key"

// openAccess uses the tokens file, API_KEY, or a token that it generates for a person at a terminal.
func (s *server) openAccess(ctx context.Context) (err error) {
	if s.tokensFile != "" {
		s.tokens.Pointer, err = reloading(ctx, s, "--tokens-file", s.readTokens, s.tokensFile)
		s.apiOptions = append(s.apiOptions, httpapi.WithAuthorizer(s.tokens.authorize), httpapi.WithEngineOperations())
		return err
	}
	if s.apiKey == "" {
		if !isTerminal(s.stdout) {
			return errors.New("there is no token: set API_KEY, for example to the output of openssl rand -hex 16, or use --tokens-file")
		}
		s.generated = rand.Text()
		s.apiKey = s.generated
	}
	table := newTokenTable()
	if err := table.add([]string{apiKeyName, s.apiKey, "write"}); err != nil {
		return fmt.Errorf("API_KEY: %w", err)
	}
	s.tokens.Pointer = new(atomic.Pointer[tokenTable])
	s.tokens.Store(&table)
	return nil
}

// openPorts listens on the socket of systemd or on --addr, and serves the metrics on --metrics-addr.
func (s *server) openPorts(ctx context.Context) error {
	listener, err := activated()
	if listener == nil && err == nil {
		listener, err = listen("--addr", s.address)
	}
	if err == nil && s.trustedProxies != "" && listener.Addr().Network() == "unix" {
		err = errors.New("--trusted-proxies requires a ListenStream of host:port: clients of a Unix socket have no address")
	}
	if err != nil {
		return err
	}
	s.onClose(func() { _ = listener.Close() })
	if s.listener, err = s.withTLS(ctx, listener); err != nil {
		return err
	}
	if err := s.newMetrics(); err != nil {
		return err
	}
	return s.serveMetrics()
}

// openStore opens the database, and starts the backups of --backup.
func (s *server) openStore(ctx context.Context) (err error) {
	if s.backup.directory != "" {
		_, err := os.ReadDir(s.backup.directory)
		if err = cmp.Or(err, checkNotWritable(s.backup.directory)); err != nil {
			return fmt.Errorf("--backup: %w", err)
		}
		warnIfReadable(s.logger, "backup directory", s.backup.directory)
	}
	if s.store, err = (database{"--db", s.database}).forServer(ctx, s.history, s.isHistorySet, s.logger); err != nil {
		return err
	}
	s.onClose(func() {
		if err := s.store.Close(); err != nil {
			s.logger.Error("the database was not closed", "error", err.Error())
		}
	})
	file, isFile := s.store.(*bolt.Store)
	if isFile {
		warnIfReadable(s.logger, "database file", s.database)
	}
	if err = s.countRelayers(); err == nil && s.backup.directory != "" { // which requires a file
		err = s.startBackups(ctx, file)
	}
	return err
}

// openManager starts reseal in the background if there are keys.
func (s *server) openManager(ctx context.Context) error {
	store, err := s.sealedStore(ctx)
	if err != nil {
		return err
	}
	s.manager, err = relayer.New(store, append(s.managerOptions, relayer.WithObserver(s.audit))...)
	if err == nil && s.keysFile != "" {
		s.inBackground(ctx, func(ctx context.Context) { s.reseal(ctx, store.(*sealed.Store)) })
	}
	return err
}

// audit is a [relayer.Observer] that logs each write that reaches the registry, except dry runs:
// who, from where, what, the outcome, and why. The API logs each read of full RPC URLs, and what
// the roles of tokens do not permit.
func (s *server) audit(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
	if operation.DryRun || !operation.Action.IsWrite() {
		return ctx, nil
	}
	return ctx, func(err error) {
		id, actor := operation.ID, operation.Actor
		if !relayer.IsID(id) { // clients may put any text in its place
			id = ""
		}
		fields := []any{"actor", actor.ID, "address", actor.Address, "request_id", actor.RequestID,
			"action", operation.Action, "relayer_id", id, "outcome", outcome.Of(ctx, err)}
		if operation.Paused != nil {
			fields = append(fields, "paused", *operation.Paused)
		}
		fields = append(fields, "old_revision", operation.OldRevision)
		if operation.Revision != 0 || operation.OldRevision == 0 { // a deleted relayer has none
			fields = append(fields, "revision", operation.Revision)
		}
		fields = append(fields, "changed", operation.Changed)
		if operation.Reason != "" { // it is last: it may be any text
			fields = append(fields, "reason", operation.Reason)
		}
		s.logger.InfoContext(ctx, "audit", fields...)
	}
}
