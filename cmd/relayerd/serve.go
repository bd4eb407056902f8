package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

type config struct {
	sealing
	address         string
	database        string
	name            string
	tokensFile      string
	rate            int
	logFormat       string
	logLevel        string
	metricsAddress  string
	trustedProxies  string
	tlsCert, tlsKey string
	drainDelay      time.Duration
	history         time.Duration
	isHistorySet    bool
	backup          backupConfig

	// The rules of relayers.
	signersFile, rpcHosts, settingsSchema         string
	networkRules, exclusiveSigners, rpcPublicOnly bool
}

func newServeCommand(apiKey string) *cobra.Command {
	var c config
	command := &cobra.Command{Use: "serve", Short: "Serve the API, a web page, health checks and metrics",
		Long: `Serve the API under /api/v1, a web page at /, health checks below /healthz/, and metrics at
/metrics. The environment variable API_KEY is the only token; --tokens-file has several, with
roles. Each flag can be an environment variable: RELAYERD_TOKENS_FILE is --tokens-file. Files of
tokens, keys, signers and certificates are read again when they change, and after SIGHUP.`,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return cmp.Or(setFromEnvironment(command), rejectEmpty(command))
		},
		RunE: func(command *cobra.Command, _ []string) error {
			c.isHistorySet = command.Flags().Changed("history")
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
	flags.StringVar(&c.database, "db", defaultDatabase, "database `file`, postgres:// URL, or memory")
	flags.StringVar(&c.tokensFile, "tokens-file", "", "`file` with a line \"name token role [selector]\" for each token")
	flags.StringVar(&c.signersFile, "signers", "", "JSON `file` of the signers that exist, with addresses")
	flags.BoolVar(&c.networkRules, "network-rules", false, "check addresses, assets and schedules of networks")
	flags.BoolVar(&c.exclusiveSigners, "exclusive-signers", false, "allow each signer one relayer per network")
	flags.StringVar(&c.settingsSchema, "settings-schema", "", "`file` with the JSON Schema of settings of relayers")
	flags.StringVar(&c.rpcHosts, "rpc-hosts", "", "`hosts` of RPC URLs, such as *.example.org,10.0.0.0/8")
	flags.BoolVar(&c.rpcPublicOnly, "rpc-public-only", false, "refuse private hosts that --rpc-hosts does not list")
	c.sealing.addFlags(command)
	flags.BoolVar(&c.unseal, "unseal", false, "store RPC URLs in clear: this turns sealing off")
	command.MarkFlagsMutuallyExclusive("unseal", "require-sealed")
	flags.StringVar(&c.name, "name", "", "`text` that the web page shows, such as production")
	flags.IntVar(&c.rate, "rate", 100, "`number` of reads per second of each token; 0 is no limit")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "PEM `file` of the certificate chain, for HTTPS")
	flags.StringVar(&c.tlsKey, "tls-key", "", "PEM `file` of the private key of --tls-cert")
	command.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	flags.StringVar(&c.trustedProxies, "trusted-proxies", "", "`networks` whose X-Forwarded-For names the client")
	flags.StringVar(&c.logFormat, "log-format", "text", "`format` of the log: text or json")
	flags.StringVar(&c.logLevel, "log-level", "info", "`level` of the log: info, or debug, which has every request too")
	flags.StringVar(&c.metricsAddress, "metrics-addr", "", "`host:port` of /metrics without a token, in place of --addr")
	flags.DurationVar(&c.drainDelay, "drain-delay", 3*time.Second, "time after SIGTERM to be unready and still serve")
	flags.DurationVar(&c.history, "history", defaultHistory, "time to retain changes; 0 is no history")
	flags.StringVar(&c.backup.directory, "backup", "", "existing `directory` for backups of the database file")
	flags.DurationVar(&c.backup.every, "backup-every", defaultBackups.every, "time between backups")
	flags.IntVar(&c.backup.keep, "backup-keep", defaultBackups.keep, "`number` of backups to keep")
	return command
}

func (c config) check() error {
	err := cmp.Or(database{"--db", c.database}.check(), checkFile("--tls-cert", c.tlsCert), checkFile("--tls-key", c.tlsKey))
	switch {
	case err != nil:
		return err
	case !isAddress(c.address):
		return errors.New("--addr must be host:port")
	case c.metricsAddress != "" && !isAddress(c.metricsAddress):
		return errors.New("--metrics-addr must be host:port")
	case c.logFormat != "text" && c.logFormat != "json":
		return errors.New("--log-format must be text or json")
	case c.logLevel != "info" && c.logLevel != "debug":
		return errors.New("--log-level must be info or debug")
	case c.unseal && c.keysFile == "":
		return errors.New("--unseal requires --keys: the keys open what is sealed")
	case c.sealedOnly && c.keysFile == "":
		return errors.New("--require-sealed requires --keys: create the file with relayerd keys add")
	case c.drainDelay < 0:
		return errors.New("--drain-delay must be 0 or more")
	case c.history != 0 && c.history < time.Second:
		return errors.New("--history must be 0 or at least 1s")
	case c.database == inMemory && c.isHistorySet:
		return errors.New("--history must not be set for memory: it retains 1,024 changes")
	case c.rate < 0 || c.rate > math.MaxInt32:
		return fmt.Errorf("--rate must be from 0 to %d", math.MaxInt32)
	case c.backup.directory == "" && c.backup != defaultBackups:
		return errors.New("--backup-every and --backup-keep require --backup, the directory for backups")
	case c.backup.directory != "" && (c.database == inMemory || isPostgres(c.database)):
		return errors.New("--backup requires a file in --db: use pg_dump for PostgreSQL")
	case c.backup.every < time.Second:
		return errors.New("--backup-every must be at least 1s")
	case c.backup.keep < 1:
		return errors.New("--backup-keep must be at least 1")
	case !isFilePath(c.backup.directory):
		return fmt.Errorf("--backup must be a directory: %s", filePathRule)
	}
	return nil
}

// isAddress rejects what is not host:port before it is looked up: the error of the
// lookup would contain it.
func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil && !strings.ContainsAny(text, "@/=")
}
