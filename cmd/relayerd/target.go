package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

const serverHelp = `With --server, the environment variable API_KEY is the bearer token.`

// target holds the flags of the registry that a command uses: a database, or a server.
type target struct {
	rules
	database     string
	server       string
	insecureHTTP bool
}

func (t *target) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.database, "db", defaultDatabase, "existing database `file` that no server has open, or a postgres:// URL")
	flags.StringVar(&t.server, "server", "", "`URL` of a server, in place of --db")
	flags.BoolVar(&t.insecureHTTP, "insecure-http", false, "permit an http URL of a host that is not local: anyone on the network path can read the token and the RPC URLs")
	command.MarkFlagsMutuallyExclusive("db", "server")
}

// addRuleFlags adds the flags of serve that determine which relayers are valid.
func (t *target) addRuleFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&t.signersFile, "signers", "", "JSON `file` of the signers that exist, as for serve")
	flags.BoolVar(&t.networkRules, "network-rules", false, "check addresses, assets and schedules by the rules of their network, as for serve")
	flags.BoolVar(&t.exclusiveSigners, "exclusive-signers", false, "allow each signer one relayer per network, as for serve")
	for _, name := range []string{"signers", "network-rules", "exclusive-signers"} {
		command.MarkFlagsMutuallyExclusive(name, "server")
	}
}

// open opens the registry of the flags. The options are those of a Manager.
func (t *target) open(ctx context.Context, apiKey string, options ...relayer.Option) (registry relayer.Registry, closeRegistry func() error, err error) {
	if t.server != "" {
		return t.openServer(apiKey)
	}
	if err := checkDurable("--db", t.database); err != nil {
		return nil, nil, err
	}
	store, closeStore, err := openExisting(ctx, "--db", t.database, lockOnce())
	if err != nil {
		return nil, nil, err
	}
	manager, err := relayer.New(store, options...)
	if err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return manager, closeStore, nil
}

func (t *target) openServer(apiKey string) (relayer.Registry, func() error, error) {
	if apiKey == "" {
		return nil, nil, errors.New("API_KEY is not set: --server needs the token of the server")
	}
	var options []client.Option
	if t.insecureHTTP {
		options = append(options, client.WithInsecureHTTP())
	}
	server, err := client.New(t.server, apiKey, options...)
	if err != nil {
		return nil, nil, t.serverError(err, apiKey)
	}
	return server, func() error { return nil }, nil
}

// serverError returns the error of a client with the name of the setting to change. It
// finds the setting by further calls of New, which sends no request.
func (t *target) serverError(err error, apiKey string) error {
	if _, err := client.New("https://localhost", apiKey); err != nil {
		return fmt.Errorf("API_KEY: %w", err)
	}
	if _, err := client.New(t.server, apiKey, client.WithInsecureHTTP()); err == nil {
		return errors.New("--server must be an https URL, because the token is sent to another host: use --insecure-http to permit http")
	}
	return fmt.Errorf("--server: %w", err)
}
