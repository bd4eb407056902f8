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
	"strings"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
)

// config holds the flags of the command serve.
type config struct {
	rules
	sealing
	address          string
	database         string
	copyFrom         string
	tokensFile       string
	allowShortTokens bool
	rate             float64
	logRequests      bool
	logFormat        string
	metricsAddress   string
	trustedProxies   string
	tlsCert, tlsKey  string
	maxConnections   int
	backup           backupConfig
}

func newServeCommand(apiKey string) *cobra.Command {
	var c config
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API, a web page, health checks and metrics",
		Long: `Serve the API under /api/v1, a web page at /, health checks at /healthz/live and
/healthz/ready, and metrics at /metrics.

The environment variable API_KEY is the bearer token of the API: at least 16 bytes, such
as the output of openssl rand -hex 16. For several tokens use
--tokens-file: a file with a line "name token" for each, or "name token read" for a
token that may only get, list and watch. SIGHUP reloads the file. If neither is set, the
server generates a token and prints it.

With --keys, RPC URLs are sealed in the database. SIGHUP reloads the file, and the server
then seals in the background what is not under the primary key.

With --backup, SIGUSR1 writes a backup at once.`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return err
			}
			if c.tokensFile != "" && apiKey != "" {
				return errors.New("--tokens-file and API_KEY are both set: unset API_KEY")
			}
			return serve(command.Context(), c, apiKey, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.address, "addr", defaultAddress, "`host:port` to listen on")
	flags.StringVar(&c.database, "db", defaultDatabase, "database `file`, created if missing, or the postgres:// URL of a database that several servers share; memory stores nothing on disk")
	flags.StringVar(&c.copyFrom, "copy-from", "", "`file` or postgres:// URL whose relayers are copied to --db before serving; a restart resumes an interrupted copy")
	flags.StringVar(&c.signersFile, "signers", "", "JSON `file` of the signers that exist, read once; without it every signer is accepted")
	flags.StringVar(&c.tokensFile, "tokens-file", "", "`file` of bearer tokens, reloaded on SIGHUP, in place of API_KEY")
	flags.BoolVar(&c.allowShortTokens, "allow-short-tokens", false, "accept tokens of fewer than 16 bytes, which can be guessed")
	flags.BoolVar(&c.networkRules, "network-rules", false, "check addresses, assets and schedules by the rules of their network")
	flags.BoolVar(&c.exclusiveSigners, "exclusive-signers", false, "allow each signer one relayer per network")
	c.sealing.addFlags(command)
	flags.Float64Var(&c.rate, "rate", httpapi.DefaultRate, "gets, lists and watches per second for each token; 0 disables the limit")
	flags.BoolVar(&c.logRequests, "log-requests", false, "log every request")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "PEM `file` of the certificate chain; --addr then serves HTTPS, and reloads the files when they change")
	flags.StringVar(&c.tlsKey, "tls-key", "", "PEM `file` of the private key of --tls-cert")
	annotate(command, "tls-cert", needs, "tls-key")
	annotate(command, "tls-key", needs, "tls-cert")
	flags.StringVar(&c.trustedProxies, "trusted-proxies", "", "comma-separated `networks` of proxies whose X-Forwarded-For header names the client")
	flags.StringVar(&c.logFormat, "log-format", "text", "`format` of the log: text or json")
	flags.StringVar(&c.metricsAddress, "metrics-addr", "", "`host:port` that serves /metrics, in place of --addr")
	flags.IntVar(&c.maxConnections, "max-connections", 0, "`number` of connections to --addr at once; further ones wait. 0 is no limit")
	flags.StringVar(&c.backup.directory, "backup", "", "existing `directory` for backups of the database file")
	flags.DurationVar(&c.backup.every, "backup-every", time.Hour, "`duration` between backups")
	flags.IntVar(&c.backup.keep, "backup-keep", 24, "`number` of backups to keep; older ones are removed")
	annotate(command, "backup-every", needs, "backup")
	annotate(command, "backup-keep", needs, "backup")
	return command
}

func (c config) check() error {
	if !isAddress(c.address) {
		return errors.New("--addr must be host:port")
	}
	if c.metricsAddress != "" && !isAddress(c.metricsAddress) {
		return errors.New("--metrics-addr must be host:port")
	}
	if c.logFormat != "text" && c.logFormat != "json" {
		return errors.New("--log-format must be text or json")
	}
	if err := checkDatabase("--db", c.database); err != nil {
		return err
	}
	if c.copyFrom != "" {
		if err := checkSource("--copy-from", c.copyFrom, "--db", c.database); err != nil {
			return err
		}
	}
	for _, file := range []struct{ flag, name string }{
		{"--tokens-file", c.tokensFile}, {"--tls-cert", c.tlsCert}, {"--tls-key", c.tlsKey}, {"--keys", c.keysFile},
	} {
		if err := checkFile(file.flag, file.name); err != nil {
			return err
		}
	}
	if c.maxConnections < 0 {
		return errors.New("--max-connections must be 0 or more")
	}
	if err := c.backup.check(c.database); err != nil {
		return err
	}
	if !(c.rate >= 0 && c.rate <= math.MaxInt32) {
		return fmt.Errorf("--rate must be from 0 to %d", math.MaxInt32)
	}
	return nil
}

func (c config) scheme() string {
	if c.tlsCert != "" {
		return "https"
	}
	return "http"
}

// isAddress rejects what is not host:port before it is looked up: the error of the
// lookup would contain it.
func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil && !strings.ContainsAny(text, "@/=")
}

// serve serves until ctx is done. Then it drains requests and closes the database.
func serve(ctx context.Context, c config, apiKey string, stdout, stderr io.Writer) (err error) {
	logger := newLogger(c.logFormat, stderr)
	managerOptions, apiOptions, err := readOptions(c, logger)
	if err != nil {
		return err
	}
	keys, err := c.sealing.load(logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	received := receiveSignals()
	defer received.stop()
	received.ignoreUnused(ctx, c, logger)
	unlock, err := c.backup.lockDirectory(c.database, logger)
	if err != nil {
		return err
	}
	defer unlock()
	certificate, err := openCertificate(c, logger)
	if err != nil {
		return err
	}
	// The port is opened before the file, so that a failed start creates no file.
	listener, err := openListener(c, certificate)
	if err != nil {
		return err
	}
	defer listener.Close()
	metrics, err := openMetrics(c, certificate, logger)
	if err != nil {
		return err
	}
	defer metrics.stop()
	access, err := openAccess(ctx, c, apiKey, received, logger)
	if err != nil {
		return err
	}
	defer access.close()
	store, closeStore, err := openWithBackups(ctx, c, metrics.registry, received.backup, stderr, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	manager, stopResealing, err := newManager(ctx, c, keys, store, append(managerOptions, relayer.WithObserver(metrics.observer)), received.keys, logger)
	if err != nil {
		return err
	}
	defer stopResealing()
	api, err := newAPI(manager, access, apiOptions)
	if err != nil {
		return err
	}
	if access.generated != "" {
		printToken(stdout, access.generated, c.scheme(), listener.Addr())
	}
	return serveHTTP(ctx, listener, newSite(ctx, api, store, metrics.public), api.Drain, logger)
}

// readOptions returns the options that the flags determine.
func readOptions(c config, logger *slog.Logger) ([]relayer.Option, []httpapi.Option, error) {
	options, err := c.managerOptions()
	if err != nil {
		return nil, nil, err
	}
	apiOptions := []httpapi.Option{rateLimit(c.rate), httpapi.WithLogger(logger)}
	if c.logRequests {
		apiOptions = append(apiOptions, httpapi.WithRequestLog(logger))
	}
	if c.trustedProxies != "" {
		trusted, err := parseProxies(c.trustedProxies)
		if err != nil {
			return nil, nil, err
		}
		apiOptions = append(apiOptions, httpapi.WithClientAddress(trusted.clientAddress))
	}
	return append(options.all(), relayer.WithLogger(logger)), apiOptions, nil
}

// openWithBackups opens the database, and starts the backups of --backup. The returned
// function stops them and closes the database.
func openWithBackups(ctx context.Context, c config, registry promclient.Registerer, requests <-chan os.Signal, stderr io.Writer, logger *slog.Logger) (relayer.Store, func() error, error) {
	store, closeStore, err := openFilled(ctx, c, stderr, logger)
	if err != nil {
		return nil, nil, err
	}
	warnIfReadable(logger, "database file", c.database)
	file, ok := store.(*bolt.Store)
	if !ok || c.backup.directory == "" {
		return store, closeStore, nil
	}
	stop, err := startBackups(ctx, newBackups(c, file, registry, logger), requests)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return store, func() error { stop(); return closeStore() }, nil
}

// newManager returns the Manager of a store, with the keys of --keys. The returned function
// stops the resealing.
func newManager(ctx context.Context, c config, keys *keysFile, store relayer.Store, options []relayer.Option, signals <-chan os.Signal, logger *slog.Logger) (*relayer.Manager, func(), error) {
	sealing, err := c.sealing.options(ctx, keys, store, logger)
	if err != nil {
		return nil, nil, err
	}
	manager, err := relayer.New(store, append(options, sealing...)...)
	if err != nil || keys == nil {
		return manager, func() {}, err
	}
	return manager, startResealing(ctx, manager, keys, signals), nil
}

func newAPI(manager *relayer.Manager, access access, apiOptions []httpapi.Option) (*httpapi.API, error) {
	api, err := httpapi.New(manager, access.authenticator, append(apiOptions, access.options...)...)
	if err != nil {
		return nil, fmt.Errorf("API_KEY: %w", err)
	}
	return api, nil
}

// openListener listens on --addr, with the limit of connections, and with TLS if there is
// a certificate.
func openListener(c config, certificate *certificate) (net.Listener, error) {
	listener, err := listen("--addr", c.address)
	if err != nil {
		return nil, err
	}
	if c.maxConnections > 0 {
		listener = netutil.LimitListener(listener, c.maxConnections)
	}
	if certificate != nil {
		listener = tls.NewListener(listener, certificate.config())
	}
	return listener, nil
}

// access is who may call the API.
type access struct {
	authenticator httpapi.Authenticator
	options       []httpapi.Option
	generated     string // the token generated for this run, if there is one
	close         func()
}

// openAccess uses the tokens file, API_KEY, or a generated token.
func openAccess(ctx context.Context, c config, apiKey string, received signals, logger *slog.Logger) (access, error) {
	if c.tokensFile != "" {
		file, stop, err := openTokensFile(ctx, c, received.reload, logger)
		if err != nil {
			return access{}, err
		}
		options := []httpapi.Option{httpapi.WithAuthorizer(file.authorize)}
		return access{authenticator: httpapi.AuthFunc(file.authenticate), options: options, close: stop}, nil
	}
	if apiKey != "" {
		if err := checkTokenLength(apiKey, minTokenBytesOf(c)); err != nil {
			return access{}, fmt.Errorf("API_KEY: %w", err)
		}
		return access{authenticator: httpapi.TokensOfAnyLength(apiKey), close: func() {}}, nil
	}
	generated := rand.Text()
	return access{authenticator: httpapi.Tokens(generated), generated: generated, close: func() {}}, nil
}

func rateLimit(perSecond float64) httpapi.Option {
	if perSecond == 0 {
		return httpapi.WithoutRateLimit()
	}
	const burstSeconds = httpapi.DefaultBurst / httpapi.DefaultRate
	return httpapi.WithRateLimit(perSecond, max(1, int(perSecond*burstSeconds)))
}

func newLogger(format string, stderr io.Writer) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(stderr, nil))
	}
	return slog.New(slog.NewTextHandler(stderr, nil))
}

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
func printToken(stdout io.Writer, token, scheme string, address net.Addr) {
	fmt.Fprintf(stdout, "API_KEY is not set. The bearer token of this run is %s\n\n", token)
	fmt.Fprintf(stdout, "  curl -H 'Authorization: Bearer %s' %s://%s/api/v1/relayers\n\n", token, scheme, address)
}

// serveHTTP handles requests until ctx is done. Then it calls drain, which ends the
// streams, and waits for the running requests.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler, drain func(), logger *slog.Logger) error {
	const drainTimeout = 15 * time.Second
	server := newServer(handler, logger)
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
