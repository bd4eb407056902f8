package relayer

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-relayer/relayer/internal/mask"
)

// RPCURL is the URL of an RPC endpoint. It often contains API keys, and is therefore
// masked if it is printed by package fmt, logged by log/slog, or encoded as JSON or text
// (see [RPCURL.String]). [RPCURL.Unmasked] is the full URL.
//
// The following bypass the mask: the verbs %p and %w, package fmt on an unexported field
// of another struct or below a pointer in one, encoding/gob, arguments of database/sql, and
// map keys in JSON.
type RPCURL string

// String returns the masked form: scheme, host and port are kept, user information is
// removed, and any path, query or fragment other than a single / becomes /***. A label of the
// host that looks like a key becomes ***: 20 or more letters and digits, with at least one of
// each, except for the last two labels. Text that is not a URL with a host becomes ***.
func (u RPCURL) String() string { return mask.URL(string(u)) }

// Unmasked returns the full URL, for the code that connects to it.
func (u RPCURL) Unmasked() string { return string(u) }

// IsMasked reports whether the URL has the mark of a hidden part: a path that ends with
// /***, the query ***, the user *** or a label *** of the host. Such a URL is from a response
// or an exported file, and a Manager never stores it. Hidden user information that left no mark
// cannot be recognized.
func (u RPCURL) IsMasked() bool {
	parsed, err := url.Parse(string(u))
	if err != nil {
		return false
	}
	return strings.HasSuffix("/"+parsed.Path, mask.Path) || parsed.RawQuery == mask.Hidden || parsed.User.Username() == mask.Hidden || mask.IsHostMasked(parsed.Hostname())
}

// canonicalURL returns the same text for equivalent notations of a URL, or "" if it has
// user information, a query or a fragment.
func canonicalURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return ""
	}
	host := strings.ToLower(parsed.Host)
	switch parsed.Scheme {
	case "http", "ws":
		host = strings.TrimSuffix(host, ":80")
	case "https", "wss":
		host = strings.TrimSuffix(host, ":443")
	}
	if parsed.Path == "" {
		parsed.Path = "/"
	}
	return parsed.Scheme + "://" + host + parsed.Path
}

// Format prints the masked form, also for %#v and for verbs that do not fit a string.
func (u RPCURL) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), u.String())
}

// MarshalText returns the masked form, for JSON, slog and other encoders.
func (u RPCURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
