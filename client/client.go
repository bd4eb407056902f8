package client

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Client is a [relayer.Registry] on a server. Create one with [New]. It is safe for concurrent
// use, and only its idle connections have goroutines after a call.
type Client struct {
	base             string                                // without a trailing slash
	token            func(context.Context) (string, error) // a function, so a client that is printed shows no token
	insecureHTTP     bool
	http             *http.Client
	timeout          time.Duration
	maxAttempts      int
	maxRetryTime     time.Duration
	maxResponseBytes int64 // also of an event of Watch
	fullURLs         bool
	hasDryRuns       *atomic.Bool // the server is known to offer them
}

var _ relayer.Registry = (*Client)(nil)

// Option configures the client that [New] returns. The zero Option is invalid.
type Option struct {
	set func(*Client)
	err error // if an argument is invalid
}

func option(isValid bool, problem string, set func(*Client)) Option {
	if !isValid {
		return Option{err: errors.New("client: " + problem)}
	}
	return Option{set: set}
}

const badToken = "the token must not be empty or have spaces, control or non-ASCII characters"

// WithToken sends the token as bearer token.
func WithToken(token string) Option {
	return option(wire.IsToken(token), badToken, func(c *Client) {
		c.token = func(context.Context) (string, error) { return token, nil }
	})
}

// WithTokenFunc sends the bearer token that the function returns. It is called for every attempt
// of a request and every connection of a Watch, so tokens may expire. Its error ends the call, or
// a Watch that has no connection, unless the attempt has used up its time. The function must be
// safe for concurrent use.
func WithTokenFunc(token func(ctx context.Context) (string, error)) Option {
	return option(token != nil, "the token function is nil", func(c *Client) { c.token = token })
}

// WithHTTPClient sends requests with a copy of the given client, for example for a client
// certificate or a proxy. Redirects are never followed: they would send the token or RPC URLs to
// another server. The shorter of client.Timeout and [WithTimeout] applies.
func WithHTTPClient(client *http.Client) Option {
	return option(client != nil, "the HTTP client is nil", func(c *Client) { c.http = client })
}

// WithInsecureHTTP permits http URLs of hosts that are not local. Anyone on the network
// path can then read the token and the RPC URLs.
func WithInsecureHTTP() Option {
	return option(true, "", func(c *Client) { c.insecureHTTP = true })
}

// WithTimeout sets the maximum duration of one attempt of a request, from its start to the end of
// its response, or of the header of a stream (1 s if it replaces another). The default is 30 s.
func WithTimeout(timeout time.Duration) Option {
	return option(timeout > 0, "the timeout must be more than 0", func(c *Client) { c.timeout = timeout })
}

// WithRetries sets the maximum number of attempts of a request, and the time after which no
// attempt is repeated. The defaults are 5 and 30 s; 1 attempt means no retries. All applies the
// limits to each page, Update to each request. If another writer is faster, Update begins again
// within that time, even with 1 attempt. Watch reconnects without these limits.
func WithRetries(maxAttempts int, maxTime time.Duration) Option {
	return option(maxAttempts > 0 && maxTime >= 0, "retries need at least 1 attempt and a time of 0 or more", func(c *Client) {
		c.maxAttempts, c.maxRetryTime = maxAttempts, maxTime
	})
}

// WithFullRPCURLs makes Get, List, All and Watch return relayers with their full RPC URLs,
// which the server must permit (see [Client.RPCURLs]). The URLs of a relayer that the server
// cannot open are masked ([relayer.RPCConfig.IsMasked] is true), and RPCURLs returns the error.
// Writes return masked URLs, except for an Update that changes nothing.
func WithFullRPCURLs() Option { return option(true, "", func(c *Client) { c.fullURLs = true }) }

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
		timeout:          30 * time.Second,
		maxAttempts:      5,
		maxRetryTime:     30 * time.Second,
		maxResponseBytes: 32 << 20,
		hasDryRuns:       new(atomic.Bool),
	}
	for _, option := range options {
		if option.set == nil {
			return nil, cmp.Or(option.err, errors.New("client: an option is empty"))
		}
		option.set(c)
	}
	base, err := parseBase(baseURL, c.insecureHTTP)
	if err != nil {
		return nil, err
	}
	copied := *c.http
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	copied.Timeout = 0 // it would end a stream
	if c.http.Timeout > 0 {
		c.timeout = min(c.timeout, c.http.Timeout)
	}
	c.base, c.http = base, &copied
	return c, nil
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
	host := parsed.Hostname()
	isLocal := strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
	if parsed.Scheme == "http" && !insecureHTTP && !isLocal {
		return "", errors.New("client: the base URL must be https, because the token is sent to another host: see WithInsecureHTTP")
	}
	return strings.TrimRight(parsed.String(), "/"), nil
}
