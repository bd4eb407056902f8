package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Client is a [relayer.Registry] on a server. Create one with [New]. It is safe for
// concurrent use, and starts no goroutine that outlives a call.
type Client struct {
	base             string  // without a trailing slash
	token            *string // a pointer, because package fmt prints unexported fields
	insecureHTTP     bool
	http             *http.Client
	stream           *http.Client // without a timeout for the body
	timeout          time.Duration
	maxAttempts      int
	maxRetryTime     time.Duration
	maxResponseBytes int64
}

var _ relayer.Registry = (*Client)(nil)

// Option configures the client that [New] returns.
type Option func(*Client) error

// WithHTTPClient sends requests with a copy of the given client, for example for a
// client certificate or a proxy. Redirects are never followed: they would send the token
// or RPC URLs elsewhere. Its Timeout does not apply to Watch.
func WithHTTPClient(client *http.Client) Option {
	return func(c *Client) error {
		if client == nil {
			return errors.New("client: HTTP client is nil")
		}
		c.http = client
		return nil
	}
}

// WithInsecureHTTP permits http URLs of hosts that are not local. Anyone on the network
// path can then read the token and the RPC URLs.
func WithInsecureHTTP() Option {
	return func(c *Client) error {
		c.insecureHTTP = true
		return nil
	}
}

// The limits of [WithTimeout], [WithRetries] and [WithMaxResponseBytes] if they are not
// set.
const (
	defaultTimeout          = 30 * time.Second
	defaultMaxAttempts      = 5
	defaultMaxRetryTime     = 30 * time.Second
	defaultMaxResponseBytes = 16 << 20
)

// WithTimeout sets the maximum duration of one request, from its start to the end of
// its response. The default is 30 s.
func WithTimeout(timeout time.Duration) Option {
	return func(c *Client) error {
		if timeout <= 0 {
			return errors.New("client: the timeout must be more than 0")
		}
		c.timeout = timeout
		return nil
	}
}

// WithRetries sets the maximum number of attempts of a call, and the time after which no
// attempt starts. The defaults are 5 and 30 s; 1 attempt means no retries. All applies
// the limits to each page. Watch reconnects without these limits, except that the time
// limits how long it tolerates responses of a proxy before its first connection.
func WithRetries(maxAttempts int, maxTime time.Duration) Option {
	return func(c *Client) error {
		if maxAttempts < 1 || maxTime < 0 {
			return errors.New("client: retries need at least 1 attempt and a time of 0 or more")
		}
		c.maxAttempts, c.maxRetryTime = maxAttempts, maxTime
		return nil
	}
}

// WithMaxResponseBytes sets the maximum size of a response, and of an event of Watch, at
// least 1 byte. The default is 16 MiB.
func WithMaxResponseBytes(limit int64) Option {
	return func(c *Client) error {
		if limit < 1 {
			return errors.New("client: the response limit must be at least 1 byte")
		}
		c.maxResponseBytes = limit
		return nil
	}
}

// New returns a client of the server at baseURL, which is the URL above /api/v1, such as
// https://relayers.example or https://example.com/prefix. The token is sent as bearer
// token. New sends no request.
//
// It returns an error if an argument is invalid. An http URL is valid only for localhost
// and loopback addresses (see [WithInsecureHTTP]).
func New(baseURL, token string, options ...Option) (*Client, error) {
	c := &Client{
		token:            &token,
		http:             &http.Client{},
		timeout:          defaultTimeout,
		maxAttempts:      defaultMaxAttempts,
		maxRetryTime:     defaultMaxRetryTime,
		maxResponseBytes: defaultMaxResponseBytes,
	}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("client: option is nil")
		}
		if err := option(c); err != nil {
			return nil, err
		}
	}
	if !wire.IsToken(token) {
		return nil, errors.New("client: the token must not be empty or have spaces, control or non-ASCII characters")
	}
	base, err := parseBase(baseURL, c.insecureHTTP)
	if err != nil {
		return nil, err
	}
	c.base = base
	c.http = withoutRedirects(c.http)
	c.stream = withoutRedirects(c.http)
	c.stream.Timeout = 0
	return c, nil
}

// Format prints the base URL, for every verb.
func (c Client) Format(state fmt.State, _ rune) {
	_, _ = fmt.Fprintf(state, "client of %s", c.base)
}

func withoutRedirects(client *http.Client) *http.Client {
	copied := *client
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// parseBase returns the URL without a trailing slash. Its errors do not quote the URL,
// which may have credentials.
func parseBase(text string, insecureHTTP bool) (string, error) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return "", errors.New("client: the base URL must be an absolute http or https URL with a host")
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "" {
		return "", errors.New("client: the base URL must not have user information, a query or a fragment")
	}
	if parsed.Scheme == "http" && !insecureHTTP && !isLocal(parsed.Hostname()) {
		return "", errors.New("client: the base URL must be https, because the token is sent to another host: see WithInsecureHTTP")
	}
	return strings.TrimRight(parsed.String(), "/"), nil
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// MasksRPCURLs returns true: the RPC URLs of a server are masked. Package plan detects
// this method.
func (*Client) MasksRPCURLs() bool { return true }

// Get returns the relayer, or [relayer.ErrNotFound].
func (c *Client) Get(ctx context.Context, id string) (*relayer.Relayer, error) {
	return c.get(ctx, id, c.newAttempts())
}

func (c *Client) get(ctx context.Context, id string, attempts *attempts) (*relayer.Relayer, error) {
	if !relayer.IsID(id) {
		return nil, relayer.ErrNotFound
	}
	resp, failed := c.do(ctx, newRequest(http.MethodGet, singlePath+id, nil), attempts)
	if failed != nil {
		return nil, failed.err
	}
	return resp.relayer, nil
}
