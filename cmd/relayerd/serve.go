package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type config struct {
	rules
	sealing
	address          string
	database         string
	tokensFile       string
	allowShortTokens bool
	rate             float64
	logRequests      bool
	logFormat        string
	metricsAddress   string
	trustedProxies   string
	tlsCert, tlsKey  string
	drainDelay       time.Duration
	history          retention
	given            retention // the part of history that flags set
	backup           backupConfig
}

func newServeCommand(apiKey string) *cobra.Command {
	var c config
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API, a web page, health checks and metrics",
		Long: `Serve the API under /api/v1, a web page at /, health checks at /healthz/live and
/healthz/ready, and metrics at /metrics, which need a token.

The environment variable API_KEY is the bearer token of the API: at least 16 bytes, such
as the output of openssl rand -hex 16. For several tokens use
--tokens-file: a file with a line "name token role [selector]" for each. The role is write,
read (get, list and watch) or engine (read, full RPC URLs, disable and enable). A selector, such as label.team=payments, limits the token to the relayers
that it selects. The server reloads the file when it changes. If neither is set, the server generates a token
and prints it.

The log has a line "audit" for every write that succeeded, a line for every read of full RPC
URLs, and at most a line each second for other writes that fail alike, and for what the role
of a token does not permit, with the name of the token.

With --keys, RPC URLs are sealed in the database. The file is reloaded too, and the server
then seals in the background what is not under the primary key.`,
		RunE: func(command *cobra.Command, _ []string) error {
			c.given = unchanged
			if command.Flags().Changed("history") {
				c.given.age = c.history.age
			}
			if command.Flags().Changed("history-changes") {
				c.given.changes = c.history.changes
			}
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
	flags.StringVar(&c.tokensFile, "tokens-file", "", "`file` of bearer tokens, reloaded when it changes; API_KEY must not be set")
	flags.BoolVar(&c.allowShortTokens, "allow-short-tokens", false, "accept tokens of fewer than 16 bytes, which can be guessed")
	c.rules.addFlags(command)
	c.sealing.addFlags(command)
	flags.Float64Var(&c.rate, "rate", 100, "gets, lists and watches per second for each token; 0 disables the limit")
	flags.BoolVar(&c.logRequests, "log-requests", false, "log every request")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "PEM `file` of the certificate chain; --addr then serves HTTPS, and reloads the files when they change")
	flags.StringVar(&c.tlsKey, "tls-key", "", "PEM `file` of the private key of --tls-cert")
	annotate(command, "tls-cert", needs, "tls-key")
	annotate(command, "tls-key", needs, "tls-cert")
	flags.StringVar(&c.trustedProxies, "trusted-proxies", "", "comma-separated `networks` of proxies whose X-Forwarded-For header names the client")
	flags.StringVar(&c.logFormat, "log-format", "text", "`format` of the log: text or json")
	completeValues(command, "log-format", "text", "json")
	flags.StringVar(&c.metricsAddress, "metrics-addr", "", "`host:port` that serves /metrics without a token, in place of --addr")
	flags.DurationVar(&c.drainDelay, "drain-delay", 3*time.Second, "`duration` after SIGTERM for which /healthz/ready reports 503 while requests are still accepted")
	flags.DurationVar(&c.history.age, "history", defaultRetention.age, "`duration` for which the history retains a change; 0 is no history. PostgreSQL keeps what was set last")
	flags.IntVar(&c.history.changes, "history-changes", defaultRetention.changes, "`number` of changes of each relayer that the history retains; 0 is no history. PostgreSQL keeps what was set last")
	flags.StringVar(&c.backup.directory, "backup", "", "existing `directory` for backups of the database file")
	flags.DurationVar(&c.backup.every, "backup-every", time.Hour, "`duration` between backups")
	flags.IntVar(&c.backup.keep, "backup-keep", 24, "`number` of backups to keep; older ones are removed")
	annotate(command, "backup-every", needs, "backup")
	annotate(command, "backup-keep", needs, "backup")
	return command
}

// completeValues makes shells complete the values of a flag.
func completeValues(command *cobra.Command, flag string, values ...string) {
	if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is not defined
	}
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
	for _, file := range []struct{ flag, name string }{
		{"--tokens-file", c.tokensFile}, {"--tls-cert", c.tlsCert}, {"--tls-key", c.tlsKey}, {"--keys", c.keysFile},
	} {
		if err := checkFile(file.flag, file.name); err != nil {
			return err
		}
	}
	if c.drainDelay < 0 {
		return errors.New("--drain-delay must be 0 or more")
	}
	if c.history.age < 0 || c.history.changes < 0 {
		return errors.New("--history and --history-changes must be 0 or more")
	}
	if c.history.age > 0 && c.history.age < time.Second {
		return errors.New("--history must be 0 or at least 1s")
	}
	if c.database == inMemory && c.given != unchanged {
		return errors.New("--history and --history-changes must not be set for memory: it retains 1,000 changes")
	}
	if err := c.backup.check(c.database); err != nil {
		return err
	}
	if !(c.rate >= 0 && c.rate <= math.MaxInt32) {
		return fmt.Errorf("--rate must be from 0 to %d", math.MaxInt32)
	}
	return nil
}

// isAddress rejects what is not host:port before it is looked up: the error of the
// lookup would contain it.
func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil && !strings.ContainsAny(text, "@/=")
}
