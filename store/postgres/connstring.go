package postgres

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ofLibpq are settings of the client that only libpq needs. The driver would send them to the
// server, which refuses them.
var ofLibpq = []string{
	"fallback_application_name", "gssdelegation", "gssencmode", "gsslib", "keepalives", "keepalives_count", "keepalives_idle",
	"keepalives_interval", "load_balance_hosts", "sslcompression", "tcp_user_timeout",
}

// parseConnString returns the settings of a connection string, and the names of those that are
// ignored. No error contains a part of the string but the name of a setting.
func parseConnString(connString string) (config *pgxpool.Config, ignored []string, err error) {
	config, err = pgxpool.ParseConfig(connString)
	if err != nil || isMisread(config.ConnConfig) {
		if wrong := wrongSetting(err); wrong != "" {
			return nil, nil, fmt.Errorf("postgres: invalid connection string: %s has no valid value", wrong)
		}
		return nil, nil, errors.New("postgres: invalid connection string: it must be a percent-encoded postgres:// URL or a list of key=value, with valid settings")
	}
	params := config.ConnConfig.RuntimeParams
	if params["gssencmode"] == "require" {
		return nil, nil, errors.New("postgres: gssencmode=require is not supported: use sslmode=verify-full")
	}
	for _, setting := range ofLibpq {
		if _, ok := params[setting]; ok {
			ignored = append(ignored, setting)
			delete(params, setting)
		}
	}
	return config, ignored, requireTLS(connString, config.ConnConfig)
}

// ofClient are settings that the driver checks. A name that contains another one is before it.
var ofClient = []string{
	"sslrootcert", "sslcertmode", "sslpassword", "sslkey", "sslcert", "sslmode", "sslnegotiation", "connect_timeout", "target_session_attrs",
	"min_protocol_version", "max_protocol_version", "channel_binding", "require_auth", "default_query_exec_mode", "statement_cache_capacity",
	"description_cache_capacity", "pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime_jitter",
	"pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period", "pool_ping_timeout", "service", "port",
}

// wrongSetting returns the setting that an error of the driver is about, or nothing. The error
// quotes the connection string first.
func wrongSetting(err error) string {
	if err == nil {
		return ""
	}
	message := err.Error()
	message = strings.ReplaceAll(message[strings.LastIndex(message, "`: ")+1:], "CA file", "sslrootcert")
	at := slices.IndexFunc(ofClient, func(setting string) bool { return strings.Contains(message, setting) })
	if at < 0 || strings.Contains(message, "failed to parse as") {
		return ""
	}
	return ofClient[at]
}

// refusedSetting returns the setting of a URL that the server has refused, or nothing if its name
// may be a part of a password.
func refusedSetting(config *pgx.ConnConfig, err error) string {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	_, query, _ := strings.Cut(config.ConnString(), "?")
	if !ok || !isURL(config.ConnString()) || strings.Contains(query, "@") {
		return ""
	}
	for setting := range config.RuntimeParams {
		if strings.Contains(strings.ToLower(refusal.Message), `"`+strings.ToLower(setting)+`"`) {
			return setting
		}
	}
	return ""
}

var hasSSLMode = regexp.MustCompile(`(^|\s)sslmode\s*=\s*'?\w`)

// requireTLS returns an error if the driver could connect without TLS to a host that is not
// local, and no sslmode was given.
func requireTLS(connString string, config *pgx.ConnConfig) error {
	isExplicit := os.Getenv("PGSSLMODE") != "" || hasSSLMode.MatchString(connString)
	if parsed, err := url.Parse(connString); err == nil && isURL(connString) {
		isExplicit = isExplicit || parsed.Query().Get("sslmode") != "" || parsed.Query().Get("ssl") != ""
	}
	hosts := append([]*pgconn.FallbackConfig{{Host: config.Host, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	isUnprotected := func(h *pgconn.FallbackConfig) bool { return h.TLSConfig == nil && !isLocal(h.Host) }
	if !isExplicit && slices.ContainsFunc(hosts, isUnprotected) {
		return errors.New("postgres: the connection string needs an sslmode, because a host is not local: use sslmode=verify-full")
	}
	return nil
}

// isLocal reports whether a host is a socket or loopback.
func isLocal(host string) bool {
	network, _ := pgconn.NetworkAddress(host, 0)
	return network == "unix" || host == "localhost" || net.ParseIP(host).IsLoopback()
}

func isURL(connString string) bool {
	return strings.HasPrefix(connString, "postgres://") || strings.HasPrefix(connString, "postgresql://")
}

// slashInPassword matches a URL with an @ after a slash. In the name of a database it is %40.
var slashInPassword = regexp.MustCompile(`^postgres(ql)?://[^/]*/[^?]*@`)

// isMisread reports a URL whose password contains an @ or a slash, and a URL that was read as
// key=value settings. Parts of the password would become the host, the database or the name of a
// setting, which errors may show.
func isMisread(config *pgx.ConnConfig) bool {
	for name := range config.RuntimeParams {
		if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			return true
		}
	}
	return strings.Contains(config.Host, "@") || slashInPassword.MatchString(config.ConnString()) ||
		slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return strings.Contains(f.Host, "@") })
}
