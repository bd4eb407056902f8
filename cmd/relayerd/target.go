package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

const serverHelp = `The environment variable API_KEY is the bearer token of --server.`

// target holds the flags of the server that a command uses.
type target struct {
	server       string
	insecureHTTP bool
	caFile       string
	diagnosis    diagnosis
}

func (t *target) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.server, "server", "", "`URL` of a server")
	flags.BoolVar(&t.insecureHTTP, "insecure-http", false, "permit an http URL of a host that is not local: anyone on the network path can read the token and the RPC URLs")
	flags.StringVar(&t.caFile, "ca-file", "", "PEM `file` of the authority of the server's certificate, if it is not a public one")
}

// open connects to nothing yet.
func (t *target) open(apiKey string) (*client.Client, error) {
	if apiKey == "" {
		return nil, errors.New("API_KEY is not set: --server needs the token of the server")
	}
	if !isBearerToken(apiKey) {
		return nil, errors.New("API_KEY: the token must consist of ASCII letters, digits and symbols")
	}
	transport, err := t.transport()
	if err != nil {
		return nil, err
	}
	t.diagnosis.transport = transport
	options := []client.Option{client.WithToken(apiKey), client.WithHTTPClient(&http.Client{Transport: &t.diagnosis})}
	if t.insecureHTTP {
		options = append(options, client.WithInsecureHTTP())
	}
	server, err := client.New(t.server, options...)
	if err != nil {
		return nil, fmt.Errorf("--server: %s", serverProblem.Replace(err.Error()))
	}
	return server, nil
}

// serverProblem changes an error of the client into one of the command.
var serverProblem = strings.NewReplacer("client: ", "", "see WithInsecureHTTP", "use --insecure-http to permit http")

// orDatabase opens a database if no server is named.
func (t *target) orDatabase(ctx context.Context, db database, apiKey string) (relayer.Registry, func(), error) {
	if t.server != "" {
		registry, err := t.open(apiKey)
		return registry, func() {}, err
	}
	store, err := db.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	manager, err := relayer.New(store)
	return manager, func() { _ = store.Close() }, err // nothing was written
}

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
	if advice := t.diagnosis.advice.Load(); err != nil && advice != nil {
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
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		d.advice.Store(new("the authority of the certificate is not known: name its file with --ca-file"))
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok && string(record.RecordHeader[:]) == "HTTP/" {
		d.advice.Store(new("the server speaks HTTP: change --server to an http URL, or to its HTTPS port"))
	}
	// An HTTPS port responds to an HTTP request without the JSON of the API.
	if err == nil && request.URL.Scheme == "http" && response.StatusCode == http.StatusBadRequest && response.Header.Get("Content-Type") != "application/json" {
		d.advice.Store(new("if the server speaks HTTPS, change --server to an https URL"))
	}
	return response, err
}
