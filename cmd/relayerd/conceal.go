package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// connection is what gives away a connection string, or a piece of one, wherever
// on the command line it has ended up: the @ or the scheme of a URL, well written
// or not, or any keyword that libpq or pgx knows.
var connection = regexp.MustCompile(`(?i)@|://|^\s*postgres(ql)?:|\b(` + strings.Join(strings.Fields(`
	host(addr)? port user dbname database password passfile service(file)? options replication client_encoding
	(fallback_)?application_name connect_timeout tcp_user_timeout keepalives\w* target_session_attrs load_balance_hosts
	require\w+ channel_binding (min|max)_protocol_version ssl\w+ krb\w+ gss\w+ scram_\w+ oauth_\w+ pool_\w+`), "|") + `)\s*=`)

// concealed is an error whose text shows no connection string of the command line.
type concealed struct {
	cause error
	text  string
}

func (e concealed) Error() string { return e.text }
func (e concealed) Unwrap() error { return e.cause }

// conceal takes out of an error every argument that may be a connection string:
// whatever found it wrong has not expected a password there, and may repeat it.
func conceal(err error, args []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, secret := range secrets(args) {
		text = strings.ReplaceAll(text, secret, "…")
	}
	return concealed{err, text}
}

// secrets are the parts of arguments that must not be shown, as they are and as
// they are quoted: the longest first, because one may have another in it.
func secrets(args []string) []string {
	var found []string
	for _, argument := range args {
		for _, part := range secretParts(strings.TrimLeft(argument, "-")) {
			quoted := strconv.Quote(part)
			found = append(found, part, quoted[1:len(quoted)-1])
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return found
}

// secretParts are the whole of an argument, and what the flag package shows of it
// alone: the value of a flag, and what stands where its name should. In a
// connection string that begins there, no password comes before a colon.
func secretParts(argument string) []string {
	if !connection.MatchString(argument) {
		return nil
	}
	parts := []string{argument}
	name, value, _ := strings.Cut(argument, "=")
	if connection.MatchString(value) {
		parts = append(parts, value)
	}
	if strings.Contains(name, ":") {
		parts = append(parts, name)
	}
	return parts
}
