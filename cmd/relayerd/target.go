package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

const serverHelp = `With --server, the environment variable API_KEY is the bearer token.`

// target holds the flags of the registry that a command uses: a database, or a server.
type target struct {
	rules
	sealing
	database     string
	create       bool // a missing database file
	isDryRun     bool // a missing database file is not created, and has no relayers
	server       string
	insecureHTTP bool
	caFile       string
	diagnosis    *diagnosis // of the connection to the server; nil without --server
}

func (t *target) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.database, "db", defaultDatabase, "existing database `file` that no server has open, or a postgres:// URL")
	flags.StringVar(&t.server, "server", "", "`URL` of a server, in place of --db")
	flags.BoolVar(&t.insecureHTTP, "insecure-http", false, "permit an http URL of a host that is not local: anyone on the network path can read the token and the RPC URLs")
	flags.StringVar(&t.caFile, "ca-file", "", "PEM `file` of the authority of the server's certificate, if it is not a public one")
	annotate(command, "db", excludes, "server")
	annotate(command, "ca-file", needs, "server")
	annotate(command, "insecure-http", needs, "server")
}

// addRuleFlags adds the flags of serve that determine which relayers are valid.
func (t *target) addRuleFlags(command *cobra.Command) {
	t.rules.addFlags(command, ", as for serve")
	for _, name := range []string{"signers", "network-rules", "exclusive-signers", "rpc-hosts", "rpc-public-only"} {
		annotate(command, name, excludes, "server")
	}
}

// open opens the registry of the flags. The options are those of a Manager.
func (t *target) open(ctx context.Context, apiKey string, options ...relayer.Option) (registry relayer.Registry, closeRegistry func() error, err error) {
	if t.server != "" {
		return t.openServer(apiKey)
	}
	return t.openDatabase(ctx, options...)
}

func (t *target) openDatabase(ctx context.Context, options ...relayer.Option) (*relayer.Manager, func() error, error) {
	if err := checkDurable("--db", t.database); err != nil {
		return nil, nil, err
	}
	logger := slog.New(slog.DiscardHandler) // the commands print sealed URLs masked
	keys, err := t.sealing.load(logger)
	if err != nil {
		return nil, nil, err
	}
	store, closeStore, err := t.openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	sealing, err := t.sealing.options(ctx, keys, store, logger)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	if keys == nil && len(sealing) > 0 {
		// Somebody else may have written a URL that is in clear among sealed ones.
		sealing = append(sealing, relayer.WithSealedOnly())
	}
	manager, err := relayer.New(store, append(options, sealing...)...)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return manager, closeStore, nil
}

func (t *target) openStore(ctx context.Context) (relayer.Store, func() error, error) {
	if !t.create {
		return openExisting(ctx, "--db", t.database, lockOnce())
	}
	if isPostgres(t.database) {
		return nil, nil, errors.New("--create needs a file in --db: relayerd serve sets up a PostgreSQL database")
	}
	if _, err := os.Stat(t.database); t.isDryRun && errors.Is(err, fs.ErrNotExist) {
		return openStore(ctx, "--db", inMemory, everything)
	}
	return openStore(ctx, "--db", t.database, everything, lockOnce())
}

func (t *target) openServer(apiKey string) (relayer.Registry, func() error, error) {
	if apiKey == "" {
		return nil, nil, errors.New("API_KEY is not set: --server needs the token of the server")
	}
	if !bearerToken.MatchString(apiKey) {
		return nil, nil, errors.New("API_KEY: the token must consist of ASCII letters, digits and symbols")
	}
	transport, err := t.transport()
	if err != nil {
		return nil, nil, err
	}
	t.diagnosis = &diagnosis{transport: transport}
	options := []client.Option{client.WithToken(apiKey), client.WithHTTPClient(&http.Client{Transport: t.diagnosis})}
	if t.insecureHTTP {
		options = append(options, client.WithInsecureHTTP())
	}
	server, err := client.New(t.server, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("--server: %s", serverProblem.Replace(err.Error()))
	}
	return server, func() error { transport.CloseIdleConnections(); return nil }, nil
}

// serverProblem changes an error of the client into one of the command.
var serverProblem = strings.NewReplacer("client: ", "", "see WithInsecureHTTP", "use --insecure-http to permit http")

// transport returns a transport that trusts the authority of --ca-file too.
func (t *target) transport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16 // as many as a plan makes changes at once
	if t.caFile == "" {
		return transport, nil
	}
	if err := checkFile("--ca-file", t.caFile); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(t.caFile)
	if err != nil {
		return nil, inputError("--ca-file", t.caFile, "name an existing PEM file", err)
	}
	authorities, err := x509.SystemCertPool()
	if err != nil {
		authorities = x509.NewCertPool()
	}
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca-file: %s contains no certificate in PEM format", t.caFile)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return transport, nil
}

// explain adds to an error of a server which flag to change.
func (t *target) explain(err error) error {
	if err == nil || t.diagnosis == nil {
		return err
	}
	if advice := t.diagnosis.advice.Load(); advice != nil {
		return fmt.Errorf("%w (%s)", err, *advice)
	}
	return err
}

// diagnosis is a transport that recognizes wrong flags by the failures of connections. The
// errors of the client do not wrap those of the transport.
type diagnosis struct {
	transport http.RoundTripper
	advice    atomic.Pointer[string] // nil if there is none
}

// RoundTrip implements [http.RoundTripper].
func (d *diagnosis) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.transport.RoundTrip(request)
	advice := ""
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		advice = "the authority of the certificate is not known: name its file with --ca-file"
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
		advice = "the server speaks HTTP: change --server to an http URL, or to its HTTPS port"
	}
	if err == nil && request.URL.Scheme == "http" && expectsHTTPS(response) {
		advice = "the server speaks HTTPS: change --server to an https URL"
	}
	if advice != "" {
		d.advice.Store(&advice)
	}
	return response, err
}

// expectsHTTPS recognizes the response of an HTTPS port of Go, nginx or Apache to an HTTP
// request.
func expectsHTTPS(response *http.Response) bool {
	if response.StatusCode != http.StatusBadRequest {
		return false
	}
	const shownBytes = 4 << 10
	// The reader of the response gets an error of this read again.
	start, _ := io.ReadAll(io.LimitReader(response.Body, shownBytes))
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), response.Body), response.Body}
	return httpsPort.Match(start)
}

var httpsPort = regexp.MustCompile(`HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS port|speaking plain HTTP to an SSL-enabled`)
