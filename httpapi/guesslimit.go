package httpapi

import (
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// The limits of [WithGuessLimit] if it is not set.
const (
	defaultGuessRate  = 10.0
	defaultGuessBurst = 300
)

// WithGuessLimit sets how many unknown bearer tokens each client address may send
// per second, more than 0, and at once, at least 1. The default is 10 per second
// and a burst of 300. Above the limit a request with an unknown token is rejected
// with 429, and an [AuthFunc] is not called for it.
//
// The tokens of [Tokens] are always known. A token of an [AuthFunc] is known from
// its first success until it is rejected. It counts during its first check, and the
// count is refunded if it is accepted. The 10,000 most recently used tokens are
// remembered in memory. Unknown tokens do not hold up clients with a known token,
// even if they come from the same address.
func WithGuessLimit(perSecond float64, burst int) Option {
	return func(a *API) (err error) {
		a.guesses.limiter, err = rateLimiterOf(perSecond, burst)
		return err
	}
}

// WithClientAddress sets the function that returns the address of a client, for a
// host behind a proxy. The function should read a header that the proxy sets and
// that no client can set. By default the address is that of the connection, and an
// IPv6 network of 64 bits counts as one address.
func WithClientAddress(address func(*http.Request) string) Option {
	return func(a *API) error {
		if address == nil {
			return errors.New("httpapi: client address function is nil")
		}
		a.guesses.address = address
		return nil
	}
}

// maxKnownTokens bounds how many accepted tokens are remembered.
const maxKnownTokens = 10_000

// tokenDigest identifies a token without keeping it in memory.
type tokenDigest [sha256.Size]byte

func digestOf(token string) tokenDigest { return sha256.Sum256([]byte(token)) }

// guessLimiter limits how many unknown tokens a client address may send.
type guessLimiter struct {
	limiter *rateLimiter // by client address
	address func(*http.Request) string
	known   *lru[tokenDigest, struct{}]
}

func newGuessLimiter() *guessLimiter {
	return &guessLimiter{
		limiter: newRateLimiter(defaultGuessRate, defaultGuessBurst),
		address: connectionAddress,
		known:   newLRU[tokenDigest, struct{}](maxKnownTokens),
	}
}

// guessLimitError reports that a client address has used up its unknown tokens.
type guessLimitError struct{ wait time.Duration }

func (guessLimitError) Error() string { return "too many unknown tokens from one client address" }

// count counts one unknown token of the client, or returns a [guessLimitError].
// Refund reverts the count if the token turns out to be valid.
func (g *guessLimiter) count(r *http.Request) (refund func(), err error) {
	client := g.address(r)
	if wait := g.limiter.take(client); wait > 0 {
		return nil, guessLimitError{wait}
	}
	return func() { g.limiter.refund(client) }, nil
}

// reject counts a token that is not valid and returns the error for its request.
func (g *guessLimiter) reject(r *http.Request) error {
	if _, err := g.count(r); err != nil {
		return err
	}
	return errInvalidToken
}

// isKnown reports whether the token was accepted before.
func (g *guessLimiter) isKnown(digest tokenDigest) bool {
	_, ok := g.known.get(digest)
	return ok
}

// remember makes the token known.
func (g *guessLimiter) remember(digest tokenDigest) {
	g.known.getOrAdd(digest, func() struct{} { return struct{}{} })
}

// forget makes the token unknown.
func (g *guessLimiter) forget(digest tokenDigest) { g.known.remove(digest) }

// connectionAddress returns the remote address of the connection without its port.
func connectionAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.Unmap().Is4() {
		return host
	}
	network, err := address.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}
