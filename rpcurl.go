package relayer

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/netguard"
)

// RPCURL is the address of an RPC endpoint. Providers put API keys into it, so
// it is masked where it is printed by package fmt, logged by log/slog, or encoded
// as JSON or text (see [RPCURL.String]); string(u) is the whole of it.
//
// It is a string all the same, and what goes round its methods sees it whole:
// the verbs %p and %w, fmt on an unexported field of another struct or below a
// pointer in one, encoding/gob, a map key in JSON.
type RPCURL string

// maskedRest stands for whatever of a URL is not shown.
const maskedRest = "/***"

// String returns the masked form: scheme, host and port stay, user information
// goes, and any path, query or fragment beyond a bare / becomes /***. What is
// no URL with a host is masked whole.
func (u RPCURL) String() string {
	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Host == "" || parsed.Scheme == "" {
		return "***"
	}
	authority, rest := u.split()
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if rest != "" && rest != "/" {
		rest = maskedRest
	}
	return parsed.Scheme + "://" + host + rest
}

// split returns the user information, host and port, and what follows them.
func (u RPCURL) split() (authority, rest string) {
	_, afterScheme, _ := strings.Cut(string(u), "://")
	end := strings.IndexAny(afterScheme, "/?#")
	if end < 0 {
		return afterScheme, ""
	}
	return afterScheme[:end], afterScheme[end:]
}

// canonicalURL returns what two spellings of one URL have in common, without user
// information, query and fragment, or "" where text has something of those.
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

// Format prints the masked form for every verb that fmt asks a type about, %#v
// and wrong verbs included.
func (u RPCURL) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), u.String())
}

// MarshalText returns the masked form, for JSON, slog and all other encoders that
// ask a type for its text.
func (u RPCURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// rpcURLProblem says what is wrong with an RPC URL, without repeating any of
// it, or returns "".
func rpcURLProblem(text string) string {
	const message = "must be an absolute http, https, ws or wss URL with a host"
	if text == "" {
		return "must not be empty"
	}
	if !utf8.ValidString(text) {
		return "must be UTF-8"
	}
	if strings.ContainsFunc(text, isControlOrSpace) {
		return "must not contain spaces or control characters"
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" || parsed.Hostname() == "" {
		return message
	}
	switch parsed.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return message
	}
	if port := parsed.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "must have a port from 1 to 65535"
		}
	}
	return netguard.HostProblem(parsed.Hostname())
}

func isControlOrSpace(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r)
}
