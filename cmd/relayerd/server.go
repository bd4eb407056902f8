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
	"os"
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
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/sealed"
)

// server has the parts of the command serve, which its open methods open one after the
// other.
type server struct {
	config
	apiKey         string
	stdout, stderr io.Writer
	logger         *slog.Logger
	reloadKeys     chan os.Signal

	managerOptions []relayer.Option
	apiOptions     []httpapi.Option
	keys           *keysFile // nil without --keys
	keysVersion    fileVersion
	certificate    *certificate // nil without --tls-cert
	listener       net.Listener
	metrics        metrics
	store          relayer.Store
	manager        *relayer.Manager
	authenticate   httpapi.Authenticator
	seesAll        func(relayer.Actor) bool // whether a token has no selector; nil if none has one
	generated      string                   // the token generated for this run, if there is one

	closers []func() error
}

// serve serves until ctx is done. Then it drains requests and closes the database.
func serve(ctx context.Context, c config, apiKey string, stdout, stderr io.Writer) (err error) {
	s := &server{config: c, apiKey: apiKey, stdout: stdout, stderr: stderr, reloadKeys: make(chan os.Signal, 1)}
	// SIGHUP without a file to reload, and the end of the process that reads the log, would end
	// this process.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	s.onClose(func() { signal.Reset(syscall.SIGHUP, syscall.SIGPIPE) })
	s.openLog()
	ctx, cancel := context.WithCancel(ctx)
	s.onClose(cancel)
	defer func() { err = errors.Join(err, s.close()) }()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		s.logger.Info("memory limit of the garbage collector", "bytes", limit)
	}
	// The ports are opened before the database, so that a failed start creates no file.
	for _, open := range []func(context.Context) error{s.openFiles, s.openPorts, s.openAccess, s.openStore, s.openManager} {
		if err := open(ctx); err != nil {
			return err
		}
	}
	api, err := httpapi.New(s.manager, s.authenticate, s.apiOptions...)
	if err != nil {
		return err
	}
	s.onClose(api.Drain) // logs the refusals of the last second
	s.printToken()
	registerRefusals(s.metrics.registry, api)
	counted := s.metrics.traffic.count(api)
	site := newSite(ctx, counted, s.store, s.publicMetrics(counted))
	running := httpServer{newServer(site, s.logger), s.drainDelay, api.Drain, s.logger}
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

func (s *server) openLog() {
	s.logger = slog.New(slog.NewTextHandler(s.stderr, nil))
	if s.logFormat == "json" {
		s.logger = slog.New(slog.NewJSONHandler(jsonWriter{s.stderr}, nil))
	}
}

// openFiles reads the files of the flags, and checks the directory of --backup.
func (s *server) openFiles(ctx context.Context) error {
	if err := s.readOptions(ctx); err != nil {
		return err
	}
	var err error
	s.keysVersion = versionOf(s.keysFile)
	if s.keys, err = s.sealing.load(s.logger); err != nil {
		return err
	}
	if s.backup.directory != "" {
		if err := s.backup.checkDirectory(); err != nil {
			return fmt.Errorf("--backup: %w", err)
		}
		warnIfReadable(s.logger, "backup directory", s.backup.directory)
	}
	s.certificate, err = openCertificate(s.config, s.logger)
	return err
}

func (s *server) readOptions(ctx context.Context) (err error) {
	if s.managerOptions, err = s.rules.managerOptions(); err != nil {
		return err
	}
	if s.signersFile != "" {
		known, err := s.openSigners(ctx)
		if err != nil {
			return err
		}
		s.managerOptions = append(s.managerOptions, relayer.WithAddressResolver(known.address))
	}
	s.apiOptions = []httpapi.Option{rateLimit(s.rate), httpapi.WithLogger(s.logger)}
	if s.logLevel == "debug" {
		s.apiOptions = append(s.apiOptions, httpapi.WithRequestLog(s.logger))
	}
	if s.trustedProxies == "" {
		return nil
	}
	trusted, err := parseProxies(s.trustedProxies)
	if err != nil {
		return err
	}
	s.apiOptions = append(s.apiOptions, httpapi.WithClientAddress(trusted.clientAddress))
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
	if s.metrics, err = openMetrics(s.config, s.certificate, s.logger); err != nil {
		return err
	}
	s.onClose(s.metrics.stop)
	s.managerOptions = append(s.managerOptions, relayer.WithObserver(s.metrics.observer))
	return nil
}

// openAccess uses the tokens file, API_KEY, or a generated token.
func (s *server) openAccess(ctx context.Context) (err error) {
	switch {
	case s.tokensFile != "":
		file, err := s.openTokensFile(ctx)
		if err != nil {
			return err
		}
		s.authenticate, s.seesAll = file.authenticate, file.seesAll
		s.apiOptions = append(s.apiOptions, httpapi.WithAuthorizer(file.authorize), httpapi.WithEngineOperations())
		return nil
	case s.apiKey != "":
		keys := newTokenTable()
		if err := keys.add([]string{apiKeyName, s.apiKey, string(roleWrite)}); err != nil {
			return fmt.Errorf("API_KEY: %w", err)
		}
		s.authenticate = keys.authenticate
		return nil
	default:
		s.generated = rand.Text()
		s.authenticate, err = httpapi.Tokens(map[string][]string{apiKeyName: {s.generated}})
		return err
	}
}

// apiKeyName is the name of API_KEY, and of a generated token, in logs.
const apiKeyName = "api-key"

// openStore opens the database, and starts the backups of --backup.
func (s *server) openStore(ctx context.Context) error {
	var store relayer.Store
	var closeStore func() error
	var err error
	if isPostgres(s.database) {
		retained := time.Duration(-1) // as the database has it
		if s.isHistorySet {
			retained = s.history
		}
		store, closeStore, err = openPostgres(ctx, "--db", s.database, postgres.WithLogger(s.logger), postgres.WithHistory(-1, retained))
	} else {
		store, closeStore, err = openStore(ctx, "--db", s.database, s.history, bolt.WithLogger(s.logger))
	}
	if err != nil {
		return err
	}
	s.store, s.closers = store, append(s.closers, closeStore)
	file, isFile := store.(*bolt.Store)
	relayers, err := newRelayersMetric(store)
	if err != nil {
		return err
	}
	s.metrics.registry.MustRegister(relayers)
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
	store, err := s.sealing.store(ctx, s.store, s.keys, s.logger)
	if err != nil {
		return err
	}
	audit := newAuditLog(s.logger)
	s.manager, err = relayer.New(store, append(s.managerOptions, relayer.WithObserver(audit.observe))...)
	if err == nil && s.keys != nil {
		s.inBackground(ctx, resealer{store.(*sealed.Store), s.keys, s.unseal, s.reloadKeys}.run)
		s.onChange(ctx, s.keysFile, s.keysVersion, func() {
			select {
			case s.reloadKeys <- syscall.SIGHUP:
			default: // the keys are reloaded soon
			}
		})
	}
	s.onClose(audit.stop)
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

// printToken prints the generated token. No other code prints a token.
func (s *server) printToken() {
	if s.generated == "" {
		return
	}
	scheme := "http"
	if s.certificate != nil {
		scheme = "https"
	}
	fmt.Fprintf(s.stdout, "API_KEY is not set. The bearer token of this run is %s\n\n", s.generated)
	fmt.Fprintf(s.stdout, "  curl -H 'Authorization: Bearer %s' %s://%s/api/v1/relayers\n\n", s.generated, scheme, s.listener.Addr())
}

func newServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// The handler responds to "OPTIONS *" as to any other request.
		DisableGeneralOptionsHandler: true,

		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
