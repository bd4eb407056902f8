package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/sealed"
)

// server has the parts of the command serve, which its open methods open one after the
// other.
type server struct {
	config
	apiKey         string
	stdout, stderr io.Writer
	logger         *slog.Logger

	managerOptions []relayer.Option
	apiOptions     []httpapi.Option
	keys           *keysFile    // nil without --keys
	certificate    *certificate // nil without --tls-cert
	listener       net.Listener
	metrics        metrics
	store          openedStore
	manager        *relayer.Manager
	tokens         *tokensFile
	generated      string // the token generated for this run, if there is one

	closers []func() error
}

// serve serves until ctx is done. Then it drains requests and closes the database.
func serve(ctx context.Context, c config, apiKey string, stdout, stderr io.Writer) (err error) {
	s := &server{config: c, apiKey: apiKey, stdout: stdout, stderr: stderr}
	// SIGHUP without a file to reload, and the end of the process that reads the log, would end
	// this process.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	s.onClose(func() { signal.Reset(syscall.SIGHUP, syscall.SIGPIPE) })
	s.logger = slog.New(slog.NewTextHandler(s.stderr, nil))
	if s.logFormat == "json" {
		s.logger = slog.New(slog.NewJSONHandler(jsonWriter{s.stderr}, nil))
	}
	ctx, cancel := context.WithCancel(ctx)
	s.onClose(cancel)
	defer func() { err = errors.Join(err, s.close()) }()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		s.logger.Info("memory limit of the garbage collector", "bytes", limit)
	}
	// The ports are opened before the database, so that a failed start creates no file.
	for _, open := range []func(context.Context) error{s.openOptions, s.openAccess, s.openPorts, s.openStore, s.openManager} {
		if err := open(ctx); err != nil {
			return err
		}
	}
	api, err := httpapi.New(s.manager, s.tokens.authenticate, s.apiOptions...)
	if err != nil {
		return err
	}
	s.printToken()
	running := httpServer{newServer(s.site(ctx, s.metrics.count(api)), s.logger), s.drainDelay, api.Drain, s.logger}
	return running.serve(ctx, s.listener)
}

// onClose adds what close calls, last added first.
func (s *server) onClose(release func()) {
	s.closers = append(s.closers, func() error { release(); return nil })
}

// inBackground runs a function until ctx is done or close is called.
func (s *server) inBackground(ctx context.Context, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	s.onClose(func() { cancel(); running.Wait() })
}

func (s *server) close() (err error) {
	for _, release := range slices.Backward(s.closers) {
		err = errors.Join(err, release())
	}
	return err
}

// openOptions reads the files of the flags, except the tokens.
func (s *server) openOptions(ctx context.Context) (err error) {
	if s.managerOptions, err = s.rules.managerOptions(); err != nil {
		return err
	}
	s.apiOptions = []httpapi.Option{rateLimit(s.rate), httpapi.WithLogger(s.logger)}
	if s.logLevel == "debug" {
		s.apiOptions = append(s.apiOptions, httpapi.WithRequestLog(s.logger))
	}
	if s.trustedProxies != "" {
		trusted, err := parseProxies(s.trustedProxies)
		if err != nil {
			return err
		}
		s.apiOptions = append(s.apiOptions, httpapi.WithClientAddress(trusted.clientAddress))
	}
	if s.signersFile != "" {
		resolver, err := s.openSigners(ctx)
		if err != nil {
			return err
		}
		s.managerOptions = append(s.managerOptions, resolver)
	}
	if s.keys, err = s.openKeys(ctx); err != nil {
		return err
	}
	s.certificate, err = s.openCertificate(ctx)
	return err
}

// apiKeyName is the name of API_KEY, and of a generated token, in logs.
const apiKeyName = "api-key"

// openAccess uses the tokens file, API_KEY, or a token that it generates for a person at a terminal.
func (s *server) openAccess(ctx context.Context) (err error) {
	if s.tokensFile != "" {
		s.tokens, err = s.openTokensFile(ctx)
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
	if err := table.add([]string{apiKeyName, s.apiKey, string(roleWrite)}); err != nil {
		return fmt.Errorf("API_KEY: %w", err)
	}
	s.tokens = new(tokensFile)
	s.tokens.Store(table)
	return nil
}

// openPorts listens on the socket of systemd or on --addr, with TLS if there is a certificate. It
// serves the metrics on --metrics-addr.
func (s *server) openPorts(context.Context) error {
	listener, err := activated()
	if listener == nil && err == nil {
		listener, err = listen("--addr", s.address)
	}
	if err != nil {
		return err
	}
	s.onClose(func() { _ = listener.Close() })
	if s.certificate != nil {
		listener = tls.NewListener(listener, s.certificate.config())
	}
	s.listener = listener
	if err := s.openMetrics(); err != nil {
		return err
	}
	s.managerOptions = append(s.managerOptions, relayer.WithObserver(s.metrics.observer))
	return s.serveMetrics()
}

// openStore opens the database, and starts the backups of --backup.
func (s *server) openStore(ctx context.Context) (err error) {
	if s.backup.directory != "" {
		if err := s.backup.checkDirectory(); err != nil {
			return fmt.Errorf("--backup: %w", err)
		}
		warnIfReadable(s.logger, "backup directory", s.backup.directory)
	}
	if s.store, err = (database{"--db", s.database}).forServer(ctx, s.history, s.isHistorySet, s.logger); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	relayers, err := newRelayersMetric(s.store)
	if err != nil {
		return err
	}
	s.metrics.registry.MustRegister(relayers)
	file, isFile := s.store.(*bolt.Store)
	if !isFile {
		return nil
	}
	warnIfReadable(s.logger, "database file", s.database)
	s.metrics.registry.MustRegister(newSizeMetric(s.database))
	if s.backup.directory == "" {
		return nil
	}
	b := &backups{s.backup, file, filepath.Base(s.database) + ".", s.logger, newBackupMetrics(s.metrics.registry)}
	last, err := b.prune(time.Now())
	if err != nil {
		return fmt.Errorf("--backup: %w", err)
	}
	s.inBackground(ctx, func(ctx context.Context) { b.run(ctx, last) })
	return nil
}

// openManager starts to seal in the background if there are keys.
func (s *server) openManager(ctx context.Context) error {
	store, err := s.sealedStore(ctx)
	if err != nil {
		return err
	}
	audit := newAuditLog(s.logger)
	s.onClose(audit.stop)
	s.manager, err = relayer.New(store, append(s.managerOptions, relayer.WithObserver(audit.observe))...)
	if err == nil && s.keys != nil {
		s.inBackground(ctx, resealer{store.(*sealed.Store), s.keys, s.unseal, s.logger}.run)
	}
	return err
}

func rateLimit(perSecond float64) httpapi.Option {
	if perSecond == 0 {
		return httpapi.WithRateLimit(0, 0)
	}
	const burstSeconds = 3
	return httpapi.WithRateLimit(perSecond, max(1, int(min(perSecond*burstSeconds, math.MaxInt32))))
}

// listen opens the port of a flag.
func listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		return listener, nil
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err
	}
	return nil, fmt.Errorf("cannot listen on %s: %w (choose another address with %s)", address, err, flag)
}

// printToken prints the generated token on the terminal. No other code prints a token.
func (s *server) printToken() {
	if s.generated == "" {
		return
	}
	scheme := "http"
	if s.certificate != nil {
		scheme = "https"
	}
	fmt.Fprintf(s.stdout, "API_KEY is not set. Open %s://%s/ with the token of this run: %s\n", scheme, s.listener.Addr(), s.generated)
}

// responseTimeout bounds the time to write a response.
const responseTimeout = 30 * time.Second

func newServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      responseTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// The handler responds to "OPTIONS *" as to any other request.
		DisableGeneralOptionsHandler: true,

		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
