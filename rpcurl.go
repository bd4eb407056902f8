package relayer

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// RPCURL is the URL of an RPC endpoint. It often contains API keys, and is therefore
// masked if it is printed by package fmt, logged by log/slog, or encoded as JSON or text
// (see [RPCURL.String]). [RPCURL.Unmasked] is the full URL.
//
// The following bypass the mask:
//   - the verbs %p and %w;
//   - package fmt on an unexported field, or behind a pointer inside a value;
//   - encoding/gob, arguments of database/sql, and map keys in JSON.
type RPCURL string

// String returns the masked form: scheme, host and port are kept, user information is
// removed, and any path, query or fragment other than a single / becomes /***. A label of the
// host becomes *** if it looks like a key: 20 or more letters and digits, with at least one of
// each. The last two labels are kept. Text that is not a URL with a host becomes ***.
func (u RPCURL) String() string { return mask.URL(string(u)) }

// Unmasked returns the full URL, for the code that connects to it.
func (u RPCURL) Unmasked() string { return string(u) }

// IsMasked reports whether a part of the URL is ***: the end of the path, the query, the user or a
// label of the host. Such a URL is from a response or an exported file, and a Manager never stores
// it. Hidden user information that left no mark cannot be recognized.
func (u RPCURL) IsMasked() bool {
	parsed, err := url.Parse(string(u))
	if err != nil {
		return false
	}
	isHostMasked := slices.Contains(strings.Split(parsed.Hostname(), "."), mask.Hidden)
	return isHostMasked || parsed.RawQuery == mask.Hidden || parsed.User.Username() == mask.Hidden || strings.HasSuffix("/"+parsed.Path, mask.Path)
}

// canonicalURL returns the same text for equivalent notations of a URL that has a host and at most a
// port: in another letter case, with escapes, or with an empty path, query or fragment.
func canonicalURL(text string) string {
	text = strings.TrimRight(text, "?#")
	if unescaped, err := url.PathUnescape(text); err == nil {
		text = unescaped // package url escapes an international host
	}
	text = strings.TrimSuffix(strings.ToLower(text), "/")
	if strings.HasPrefix(text, "http:") || strings.HasPrefix(text, "ws:") {
		return strings.TrimSuffix(text, ":80")
	}
	return strings.TrimSuffix(text, ":443")
}

// Format prints the masked form for every verb except %p, %T and %w.
func (u RPCURL) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), u.String())
}

// MarshalText returns the masked form, for JSON, slog and other encoders.
func (u RPCURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Secret is the value of a header of an endpoint. Package fmt, log/slog and encoders show it as
// ***, with the exceptions that [RPCURL] lists.
type Secret string

// Unmasked returns the value, for the code that sends it.
func (s Secret) Unmasked() string { return string(s) }

// IsMasked reports whether the value is ***: it is from a response or an exported file, and a
// Manager never stores it.
func (s Secret) IsMasked() bool { return s == mask.Hidden }

// Format prints *** for every verb except %p, %T and %w.
func (s Secret) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), mask.Hidden)
}

// MarshalText returns ***, for JSON, slog and other encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(mask.Hidden), nil }

// RPCConfig is one custom RPC endpoint.
type RPCConfig struct {
	// URL is an absolute http, https, ws or wss URL. Its host is neither an unspecified address nor
	// a known cloud metadata service. Responses have it masked.
	URL RPCURL `json:"url" validate:"rpc_url"`

	// Weight is the relative weight with which the engine chooses the endpoint, from 0 to 100.
	//
	// Nil means [DefaultRPCWeight].
	Weight *float64 `json:"weight" validate:"omitnil,finite,gte=0,lte=100"`

	// Headers are sent with each request to the endpoint: at most 16, of 4 KiB together. A name
	// is an HTTP field name, in any letter case, and not one that the connection uses, such as
	// Host. A value is visible ASCII and inner spaces. Responses show the names, and `***` as
	// values.
	Headers map[string]Secret `json:"headers,omitempty" xml:"-" wire:"optional"`
}

// DefaultRPCWeight is the weight of an [RPCConfig] without one.
const DefaultRPCWeight = 100.0

// Format prints the JSON form of the endpoint for every verb except %p, %T and %w. The URL and headers
// are masked.
func (c RPCConfig) Format(state fmt.State, _ rune) { strictjson.Print(state, c) }

// IsMasked reports whether the URL or the value of a header is masked ([RPCURL.IsMasked]).
func (c RPCConfig) IsMasked() bool {
	return c.URL.IsMasked() || slices.ContainsFunc(slices.Collect(maps.Values(c.Headers)), Secret.IsMasked)
}

func (c RPCConfig) equals(other RPCConfig) bool {
	return c.URL == other.URL && maps.Equal(c.Headers, other.Headers) && (c.Weight == nil) == (other.Weight == nil) && (c.Weight == nil || *c.Weight == *other.Weight)
}

// isMaskOf reports whether c is the masked form of full.
func (c RPCConfig) isMaskOf(full RPCConfig) bool {
	if full.URL = RPCURL(full.URL.String()); c.URL != full.URL {
		c.URL = RPCURL(c.URL.String()) // an earlier mask may have shown more
	}
	full.Headers = maps.Clone(full.Headers)
	for name := range full.Headers {
		full.Headers[name] = mask.Hidden
	}
	return c.equals(full)
}

// fullRPC is the JSON of an [RPCConfig] that is not masked.
type fullRPC struct {
	URL     string            `json:"url"`
	Weight  *float64          `json:"weight,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

const urlsMember = "custom_rpc_urls"

func fullOf(endpoints []RPCConfig) []fullRPC {
	full := make([]fullRPC, len(endpoints))
	for i, endpoint := range endpoints {
		full[i] = fullRPC{URL: endpoint.URL.Unmasked(), Weight: endpoint.Weight}
		if len(endpoint.Headers) > 0 {
			full[i].Headers = make(map[string]string)
		}
		for name, value := range endpoint.Headers {
			full[i].Headers[name] = value.Unmasked()
		}
	}
	return full
}

// endpointsOf decodes the endpoints of a document or of a private part in clear.
func endpointsOf(object []byte) ([]RPCConfig, error) {
	var decoded struct {
		CustomRPCURLs []RPCConfig `json:"custom_rpc_urls"`
	}
	err := json.Unmarshal(object, &decoded)
	return decoded.CustomRPCURLs, err
}
