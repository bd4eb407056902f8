// Command server is a relayer registry as a service: the HTTP API of package
// httpapi over an embedded store, or over a PostgreSQL database that it shares
// with other instances.
//
//	API_KEY=secret go run ./cmd/relayerd -addr 127.0.0.1:8080 -db relayers.db
//	API_KEY=secret go run ./cmd/relayerd -db postgres://registry@db.example/relayers -copy-from relayers.db
//
// Without API_KEY it makes a bearer token and prints it once.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default comes back, so that a second one ends a
	// drain that takes too long.
	context.AfterFunc(ctx, stop)

	err := run(ctx, os.Args[1:], os.Getenv("API_KEY"), os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", oneLine.Replace(err.Error()))
		os.Exit(1)
	}
}

// oneLine is for errors that are several, each on a line of its own.
var oneLine = strings.NewReplacer("\n", "; ")

// config is what the command line says.
type config struct {
	address          string
	database         string
	copyFrom         string
	signersFile      string
	networkRules     bool
	exclusiveSigners bool
	rate             float64
	logRequests      bool
}

func parseFlags(args []string, usage io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	flags.StringVar(&c.address, "addr", "127.0.0.1:8080", "`host:port` to listen on")
	flags.StringVar(&c.database, "db", "relayers.db", "database `file`, made if it is not there, or the postgres:// URL of a database that several servers share; memory keeps nothing")
	flags.StringVar(&c.copyFrom, "copy-from", "", "`file` or postgres:// URL whose relayers are all copied to -db before serving; started again, a copy that was interrupted goes on")
	flags.StringVar(&c.signersFile, "signers", "", "JSON `file` of the signers that exist; without it any signer is taken")
	flags.BoolVar(&c.networkRules, "network-rules", false, "check addresses, assets and schedules by the rules of their network")
	flags.BoolVar(&c.exclusiveSigners, "exclusive-signers", false, "let a signer have only one relayer on each network")
	flags.Float64Var(&c.rate, "rate", httpapi.DefaultRate, "gets and lists a second for each token; 0 is no limit")
	flags.BoolVar(&c.logRequests, "log-requests", false, "log every request")

	// The flag package would print an error, and then all of the usage.
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(usage)
		flags.Usage()
		return c, err
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = checkGiven(flags)
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return c, fmt.Errorf("%w (-h lists the flags)", err)
	}
	return c, nil
}

// checkGiven refuses a flag that is given and empty: a variable that is not set
// would quietly mean less than was asked for.
func checkGiven(flags *flag.FlagSet) (err error) {
	flags.Visit(func(given *flag.Flag) {
		if given.Value.String() == "" {
			err = fmt.Errorf("-%s is empty", given.Name)
		}
	})
	return err
}

func (c config) check() error {
	if !isAddress(c.address) {
		return errors.New("-addr must be host:port")
	}
	if err := checkName(c.database); err != nil {
		return fmt.Errorf("-db %w", err)
	}
	if c.copyFrom != "" {
		if err := checkSource(c.copyFrom, c.database); err != nil {
			return fmt.Errorf("-copy-from %w", err)
		}
	}
	if !(c.rate >= 0 && c.rate <= math.MaxInt32) {
		return fmt.Errorf("-rate must be from 0 to %d", math.MaxInt32)
	}
	return nil
}

// isAddress keeps from being looked up what is no address: the error would have
// a piece of it.
func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil && !strings.ContainsAny(text, "@/=")
}

// run serves until ctx is done, then drains requests and closes the database. No
// error shows a connection string.
func run(ctx context.Context, args []string, token string, stdout, stderr io.Writer) error {
	return conceal(runServer(ctx, args, token, stdout, stderr), args)
}

func runServer(ctx context.Context, args []string, token string, stdout, stderr io.Writer) (err error) {
	c, err := parseFlags(args, stdout)
	if err != nil {
		return err
	}
	options, err := managerOptions(c)
	if err != nil {
		return err
	}
	// The address before the file: a start that fails leaves no new file behind.
	listener, err := listen(c.address)
	if err != nil {
		return err
	}
	defer listener.Close()
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	store, closeStore, err := openFilled(ctx, c, stderr, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	warnOfShared(logger, c.database)

	observer, metrics, err := newMetrics()
	if err != nil {
		return err
	}
	manager, err := relayer.New(store, append(options, relayer.WithObserver(observer), relayer.WithLogger(logger))...)
	if err != nil {
		return err
	}
	isMade := token == ""
	if isMade {
		token = rand.Text()
	}
	handler, err := httpapi.New(manager, httpapi.Tokens(token), handlerOptions(c, logger)...)
	if err != nil {
		return fmt.Errorf("API_KEY: %w", err)
	}
	if isMade {
		printToken(stdout, token, listener.Addr())
	}
	return serve(ctx, listener, newSite(ctx, handler, store, metrics), logger)
}

// newSite is everything that is served: beside the API the page for people and
// what watches over the server asks for, which need no token and tell nothing of
// relayers. What is not exactly one of those paths is the API's to answer; a
// ServeMux would answer some of it by itself.
func newSite(ctx context.Context, api http.Handler, store relayer.Store, metrics http.Handler) http.Handler {
	beside := map[string]http.Handler{
		"/":              newPage(),
		"/metrics":       metrics,
		"/healthz/live":  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerHealth(w, http.StatusOK, "live") }),
		"/healthz/ready": readiness(ctx, store),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler := beside[r.URL.Path]
		if handler == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
			handler = api
		}
		handler.ServeHTTP(w, r)
	})
}

// readiness reports whether requests should be sent here: not after ctx is done,
// and not while the store cannot serve. A store that reports whether it can take
// writes is asked that.
func readiness(ctx context.Context, store relayer.Store) http.Handler {
	ready := func(ctx context.Context) error {
		_, _, err := store.List(ctx, 0, 0)
		return err
	}
	if writable, ok := store.(interface{ Ready(context.Context) error }); ok {
		ready = writable.Ready
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			answerHealth(w, http.StatusServiceUnavailable, "stopping")
			return
		}
		if ready(r.Context()) != nil {
			answerHealth(w, http.StatusServiceUnavailable, "store unavailable")
			return
		}
		answerHealth(w, http.StatusOK, "ready")
	})
}

func answerHealth(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

func managerOptions(c config) ([]relayer.Option, error) {
	var options []relayer.Option
	if c.networkRules {
		options = append(options, relayer.WithNetworkRules())
	}
	if c.exclusiveSigners {
		options = append(options, relayer.WithExclusiveSigners())
	}
	if c.signersFile != "" {
		known, err := readSigners(c.signersFile)
		if err != nil {
			return nil, err
		}
		options = append(options, relayer.WithAddressResolver(known.address))
	}
	return options, nil
}

func handlerOptions(c config, logger *slog.Logger) []httpapi.Option {
	options := []httpapi.Option{rateLimit(c.rate), httpapi.WithLogger(logger)}
	if c.logRequests {
		options = append(options, httpapi.WithRequestLog(logger))
	}
	return options
}

func rateLimit(perSecond float64) httpapi.Option {
	if perSecond == 0 {
		return httpapi.WithoutRateLimit()
	}
	const burstSeconds = httpapi.DefaultBurst / httpapi.DefaultRate
	return httpapi.WithRateLimit(perSecond, max(1, int(perSecond*burstSeconds)))
}

func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		return listener, nil
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err
	}
	return nil, fmt.Errorf("cannot listen on %s: %w (choose another address with -addr)", address, err)
}

// printToken shows the token made for this run. It is the only place where a
// token is ever shown.
func printToken(stdout io.Writer, token string, address net.Addr) {
	fmt.Fprintf(stdout, "API_KEY is not set. The bearer token of this run is %s\n\n", token)
	fmt.Fprintf(stdout, "  curl -H 'Authorization: Bearer %s' http://%s/api/v1/relayers\n\n", token, address)
}

// serve answers requests until ctx is done, then lets those under way finish.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	const drain = 15 * time.Second
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// "OPTIONS *" is answered by the handler, as everything else.
		DisableGeneralOptionsHandler: true,

		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	logger.Info("serving", "address", listener.Addr().String())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	logger.Info("stopping", "drain", drain.String())
	drainContext, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := server.Shutdown(drainContext); err != nil {
		return errors.Join(fmt.Errorf("requests still under way after %s: %w", drain, err), server.Close())
	}
	logger.Info("stopped")
	return nil
}

// signers are the addresses of every signer that exists, by its id.
type signers map[string]struct {
	EVM     string `json:"evm"`
	Solana  string `json:"solana"`
	Stellar string `json:"stellar"`
}

func readSigners(file string) (signers, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("signers: %w", err)
	}
	known, err := parseSigners(data)
	if err != nil {
		return nil, fmt.Errorf("signers file %s: %w", file, err)
	}
	return known, nil
}

func parseSigners(data []byte) (signers, error) {
	var known signers
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&known)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil && known == nil {
		return nil, errors.New("must be an object of objects of addresses")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("unexpected end")
	}
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return known, nil
}

// address is a [relayer.AddressResolver]. A signer that has no address on a
// type of network cannot sign for it.
func (s signers) address(_ context.Context, signerID string, networkType relayer.NetworkType, _ string) (string, error) {
	known := s[signerID]
	address := map[relayer.NetworkType]string{
		relayer.EVM:     known.EVM,
		relayer.Solana:  known.Solana,
		relayer.Stellar: known.Stellar,
	}[networkType]
	if address == "" {
		return "", relayer.ErrUnknownSigner
	}
	return address, nil
}
