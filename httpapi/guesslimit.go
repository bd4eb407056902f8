package httpapi

import (
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// DefaultGuessRate and DefaultGuessBurst are how many tokens that are not known
// to be right a client address may send in a second, and at once, unless
// [WithGuessLimit] says otherwise.
const (
	DefaultGuessRate  = 10.0
	DefaultGuessBurst = 300
)

// WithGuessLimit sets how many bearer tokens that are not known to be right each
// client address may send in a second, more than 0, and how many at once, at
// least 1. Above the limit they are answered 429, and an [AuthFunc] is not called.
//
// The tokens of [Tokens] are always known, and a token of an [AuthFunc] is known
// once it was right. The last 10,000 are remembered until the process ends. A
// client with a known token is not limited, whatever other clients of its address
// send.
func WithGuessLimit(perSecond float64, burst int) Option {
	return Option{func(a *api) (err error) {
		a.guesses.limiter, err = rateLimiterOf(perSecond, burst)
		return err
	}}
}

// WithoutGuessLimit looks at every token, for a host that limits guesses
// elsewhere.
func WithoutGuessLimit() Option {
	return Option{func(a *api) error {
		a.guesses.limiter = nil
		return nil
	}}
}

// WithClientAddress says where the address of a client is to be found, for a
// host behind a proxy: in a header that the proxy sets, and that no client can.
// By default it is that of the connection, an IPv6 network of 64 bits counting
// as one.
func WithClientAddress(address func(*http.Request) string) Option {
	return Option{func(a *api) error {
		if address == nil {
			return errors.New("httpapi: client address is nil")
		}
		a.guesses.address = address
		return nil
	}}
}

// maxTrustedTokens bounds how many tokens are remembered as right.
const maxTrustedTokens = 10_000

// guesses slows down whoever tries one token after the other.
type guesses struct {
	limiter *rateLimiter // by client address; nil: no limit
	address func(*http.Request) string
	trusted *recent[[sha256.Size]byte, struct{}]
}

func newGuesses() *guesses {
	return &guesses{
		limiter: newRateLimiter(DefaultGuessRate, DefaultGuessBurst),
		address: connectionAddress,
		trusted: newRecent[[sha256.Size]byte, struct{}](maxTrustedTokens),
	}
}

// guessLimitError says that an address has used up its guesses.
type guessLimitError struct{ wait time.Duration }

func (guessLimitError) Error() string { return "too many unknown tokens from one address" }

// count counts a guess of the client, or returns a [guessLimitError].
func (g *guesses) count(r *http.Request) error {
	if g.limiter == nil {
		return nil
	}
	if wait := g.limiter.wait(g.address(r)); wait > 0 {
		return guessLimitError{wait}
	}
	return nil
}

// isTrusted reports whether the token with this digest was right before.
func (g *guesses) isTrusted(digest [sha256.Size]byte) bool {
	_, ok := g.trusted.get(digest)
	return ok
}

func (g *guesses) trust(digest [sha256.Size]byte) {
	g.trusted.getOrMake(digest, func() struct{} { return struct{}{} })
}

// connectionAddress is the address that the connection comes from.
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
