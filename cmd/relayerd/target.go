package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
	transport    *http.Transport // set by open
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
	t.transport = http.DefaultTransport.(*http.Transport).Clone()
	t.transport.MaxIdleConnsPerHost = 16 // as many as a plan makes changes at once
	t.transport.ResponseHeaderTimeout = backupTimeout
	if err := t.trustAuthority(); err != nil {
		return nil, err
	}
	options := []client.Option{client.WithToken(apiKey), client.WithHTTPClient(&http.Client{Transport: t.transport})}
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

// trustAuthority makes the transport trust the authority of --ca-file too.
func (t *target) trustAuthority() error {
	if t.caFile == "" {
		return nil
	}
	text, err := readFile("--ca-file", t.caFile, "name an existing PEM file")
	if err != nil {
		return err
	}
	authorities, err := x509.SystemCertPool()
	if err != nil {
		authorities = x509.NewCertPool()
	}
	if !authorities.AppendCertsFromPEM(text) {
		return fmt.Errorf("--ca-file: %s contains no certificate in PEM format", t.caFile)
	}
	t.transport.TLSClientConfig = &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return nil
}
