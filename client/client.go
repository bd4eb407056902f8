package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Client is a [relayer.Registry] on a server. Create one with [New]. It is safe for
// concurrent use, and starts no goroutine that outlives a call.
type Client struct {
	base             string // without a trailing slash
	token            func(context.Context) (string, error)
	insecureHTTP     bool
	http             *http.Client
	stream           *http.Client // without a timeout for the body
	timeout          time.Duration
	maxAttempts      int
	maxRetryTime     time.Duration
	maxResponseBytes int64
	fullURLs         bool
	hasDryRuns       *atomic.Bool // the server is known to offer them
}

var _ relayer.Registry = (*Client)(nil)

// Option configures the client that [New] returns. The zero Option is invalid.
type Option struct{ apply func(*Client) error }

// WithToken sends the token as bearer token.
func WithToken(token string) Option {
	return Option{func(c *Client) error {
		c.token = func(context.Context) (string, error) { return token, nil }
		return checkToken(token)
	}}
}

// WithTokenFunc sends the bearer token that the function returns. It is called for every
// attempt of a request and every connection of a Watch, so that tokens may expire. Its
// error ends the call or the Watch. It must be safe for concurrent use.
func WithTokenFunc(token func(ctx context.Context) (string, error)) Option {
	return Option{func(c *Client) error {
		if token == nil {
			return errors.New("client: token function is nil")
		}
		c.token = token
		return nil
	}}
}

func checkToken(token string) error {
	if !wire.IsToken(token) {
		return errors.New("client: the token must not be empty or have spaces, control or non-ASCII characters")
	}
	return nil
}

// WithHTTPClient sends requests with a copy of the given client, for example for a
// client certificate or a proxy. Redirects are never followed: they would send the token
// or RPC URLs elsewhere. Its Timeout does not apply to Watch.
func WithHTTPClient(client *http.Client) Option {
	return Option{func(c *Client) error {
		if client == nil {
			return errors.New("client: HTTP client is nil")
		}
		c.http = client
		return nil
	}}
}

// WithInsecureHTTP permits http URLs of hosts that are not local. Anyone on the network
// path can then read the token and the RPC URLs.
func WithInsecureHTTP() Option {
	return Option{func(c *Client) error {
		c.insecureHTTP = true
		return nil
	}}
}

// The limits of [WithTimeout] and [WithRetries] if they are not set.
const (
	defaultTimeout      = 30 * time.Second
	defaultMaxAttempts  = 5
	defaultMaxRetryTime = 30 * time.Second
)

// defaultMaxResponseBytes is the maximum size of a response, and of an event of Watch.
const defaultMaxResponseBytes = 16 << 20

// WithTimeout sets the maximum duration of one request, from its start to the end of
// its response. The default is 30 s.
func WithTimeout(timeout time.Duration) Option {
	return Option{func(c *Client) error {
		if timeout <= 0 {
			return errors.New("client: the timeout must be more than 0")
		}
		c.timeout = timeout
		return nil
	}}
}

// WithRetries sets the maximum number of attempts of a call, and the time after which no
// attempt starts. The defaults are 5 and 30 s; 1 attempt means no retries. All applies
// the limits to each page. Watch reconnects without these limits.
func WithRetries(maxAttempts int, maxTime time.Duration) Option {
	return Option{func(c *Client) error {
		if maxAttempts < 1 || maxTime < 0 {
			return errors.New("client: retries need at least 1 attempt and a time of 0 or more")
		}
		c.maxAttempts, c.maxRetryTime = maxAttempts, maxTime
		return nil
	}}
}

// New returns a client of the server at baseURL, which is the URL above /api/v1, such as
// https://relayers.example or https://example.com/prefix. Without [WithToken] or
// [WithTokenFunc] it sends no token, for servers that authenticate clients otherwise, for
// example by certificates. New sends no request.
//
// It returns an error if an argument is invalid. An http URL is valid only for localhost
// and loopback addresses (see [WithInsecureHTTP]).
func New(baseURL string, options ...Option) (*Client, error) {
	c := &Client{
		http:             &http.Client{},
		timeout:          defaultTimeout,
		maxAttempts:      defaultMaxAttempts,
		maxRetryTime:     defaultMaxRetryTime,
		maxResponseBytes: defaultMaxResponseBytes,
		hasDryRuns:       new(atomic.Bool),
	}
	for _, option := range options {
		if option.apply == nil {
			return nil, errors.New("client: option is empty")
		}
		if err := option.apply(c); err != nil {
			return nil, err
		}
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

// Get returns the relayer, or [relayer.ErrNotFound].
func (c *Client) Get(ctx context.Context, id string) (*relayer.Relayer, error) {
	r, err := c.read(ctx, id, c.fullURLs, c.newAttempts())
	return named(relayer.ActionGet, id, r, err)
}

func (c *Client) read(ctx context.Context, id string, fullURLs bool, attempts *attempts) (*relayer.Relayer, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return fetch(ctx, c, newSingleRequest(http.MethodGet, id, "", nil).withURLs(fullURLs), attempts, (*response).single)
}

// checkID returns [relayer.ErrNotFound] for an ID that no relayer can have, and that may
// not fit into a path.
func checkID(id string) error {
	if !relayer.IsID(id) {
		return relayer.ErrNotFound
	}
	return nil
}
