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
// least 1. More are answered 429 without being looked at. A token is known once
// it was right, the last 10,000 of them being remembered, so that a client whose
// address others share is not locked out with them.
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

// wait returns how long the client must wait before its token is looked at: 0
// where it may be, and then it counts, whatever comes of it. To count only what
// turns out to be wrong would let any number be tried at the same time. Where
// the token is right after all, right remembers it.
func (g *guesses) wait(r *http.Request) (delay time.Duration, right func()) {
	nothing := func() {}
	if g.limiter == nil {
		return 0, nothing
	}
	token, err := bearerToken(r.Header)
	if err != nil {
		return 0, nothing // there is nothing to guess with: it is refused anyway
	}
	digest := sha256.Sum256([]byte(token))
	if _, ok := g.trusted.get(digest); ok {
		return 0, nothing
	}
	return g.limiter.wait(g.address(r)), func() {
		g.trusted.getOrMake(digest, func() struct{} { return struct{}{} })
	}
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
