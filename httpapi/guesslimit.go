package httpapi

import (
	"errors"
	"hash/maphash"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-relayer/relayer"
)

// The limits of [WithGuessLimit] if it is not set.
const (
	defaultGuessRate  = 10.0
	defaultGuessBurst = 300
)

// WithGuessLimit sets how many requests with unknown credentials each client address may
// send per second, more than 0, and at once, at least 1. The default is 10 per second
// and a burst of 300. Above the limit such a request is rejected with 429, and the
// [Authenticator] is not called for it.
//
// Credentials are the values of the headers Authorization and Cookie. They are known from
// their first success until they are rejected. They count during their first check, and the
// count is refunded if they are accepted. The 10,000 most recently used ones are remembered
// in memory, by a digest. Unknown credentials do not delay clients with known ones, even if
// they come from the same address. A request without credentials does not count. The 2^64
// IPv6 addresses of a network count as one address.
func WithGuessLimit(perSecond float64, burst int) Option {
	return Option{func(s *settings) (err error) {
		s.guesses.limiter, err = rateLimiterOf(perSecond, burst)
		return err
	}}
}

// WithClientAddress sets the function that returns the address of a client, for a
// host behind a proxy. The function should read a header that the proxy sets and
// that no client can set. By default the address is that of the connection. It is the
// Address of the [relayer.Actor], and [WithGuessLimit] counts by it.
func WithClientAddress(address func(*http.Request) string) Option {
	return Option{func(s *settings) error {
		if address == nil {
			return errors.New("httpapi: client address function is nil")
		}
		s.address = address
		return nil
	}}
}

const maxKnownCredentials = 10_000

type guessLimiter struct {
	limiter *rateLimiter         // by client address
	known   *lru[uint64, string] // the ID of the actor
	seed    maphash.Seed
}

func newGuessLimiter() *guessLimiter {
	return &guessLimiter{
		limiter: newRateLimiter(defaultGuessRate, defaultGuessBurst),
		known:   newLRU[uint64, string](maxKnownCredentials),
		seed:    maphash.MakeSeed(),
	}
}

// guessLimitError reports that a client address has used up its unknown credentials.
type guessLimitError struct{ wait time.Duration }

func (guessLimitError) Error() string { return "too many unknown credentials from one client address" }

// credentials are those of a request, if it has any.
type credentials struct {
	digest uint64
	isSent bool
	actor  string // the ID of the actor if they are known
}

// check calls the Authenticator. It counts unknown credentials before the call, so that
// those that are checked concurrently count too, and known ones if they are rejected.
func (g *guessLimiter) check(r *http.Request, sent credentials, address string, authenticate Authenticator) (relayer.Actor, error) {
	if !sent.isSent {
		return authenticate(r)
	}
	if sent.actor != "" {
		actor, err := authenticate(r)
		if errors.Is(err, ErrUnauthorized) {
			g.known.remove(sent.digest)
			if wait := g.limiter.take(networkOf(address)); wait > 0 {
				err = guessLimitError{wait}
			}
		}
		return actor, err
	}
	client := networkOf(address)
	if wait := g.limiter.take(client); wait > 0 {
		return relayer.Actor{}, guessLimitError{wait}
	}
	actor, err := authenticate(r)
	if err == nil {
		g.limiter.refund(client)
		g.known.getOrAdd(sent.digest, func() string { return actor.ID })
	}
	return actor, err
}

// credentials returns the credentials of a request. Two with the same digest are harmless: a
// known one only bypasses the limit, and uses the share of another actor until it is checked.
func (g *guessLimiter) credentials(header http.Header) (sent credentials) {
	var hash maphash.Hash
	hash.SetSeed(g.seed)
	for _, name := range [...]string{"Authorization", "Cookie"} {
		for _, value := range header[name] {
			_, _ = hash.WriteString(value)
			_ = hash.WriteByte('\n') // no value contains it
			sent.isSent = true
		}
		_ = hash.WriteByte('\n')
	}
	sent.digest = hash.Sum64()
	if sent.isSent {
		sent.actor, _ = g.known.get(sent.digest)
	}
	return sent
}

// connectionAddress returns the remote address of the connection without its port.
func connectionAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// networkOf returns the network of 64 bits of an IPv6 address, and any other address as
// it is.
func networkOf(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil || parsed.Unmap().Is4() {
		return address
	}
	return netip.PrefixFrom(parsed.WithZone(""), 64).Masked().String()
}
