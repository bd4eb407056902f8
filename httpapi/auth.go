package httpapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Authenticator returns who sent a request: from a bearer token, a cookie, a client
// certificate, or the context. [Tokens] and [TrustHost] return one. Browsers add cookies to
// requests of other sites, and the credentials of HTTP Basic authentication too: with either, wrap
// the API in [http.CrossOriginProtection]. Rate limits and logs use the ID of the actor, which must
// not be empty. The API sets its RequestID and Address.
//
// An error that matches [ErrUnauthorized] rejects the request with 401. Any other error is
// a fault of the host: it is logged, and the response is 503. A panic is logged, and the
// response is 500. The function must be safe for concurrent use, and must not read the body.
//
// The function is called for every request, and about every 15 seconds for an open stream,
// which ends if the function rejects it, or if the actor then sees other relayers.
//
// It is called without a limit of rejected credentials. Credentials need 128 random bits, and a
// function that asks a slow service limits how often it does.
type Authenticator func(r *http.Request) (relayer.Actor, error)

// ErrUnauthorized is the error of an [Authenticator] that does not accept a request.
var ErrUnauthorized = wire.ErrUnauthorized

// minTokenBytes is the length of the shortest token that [Tokens] accepts: one of 128
// random bits in Base64 or hexadecimal digits is longer.
const minTokenBytes = 16

// Tokens accepts bearer tokens, by the name of their owner, which is the ID of the actor. An
// owner with several tokens can rotate them without a gap:
//
//	httpapi.Tokens(map[string][]string{"deploy": {newToken, oldToken}, "dashboard": {token}})
//
// It returns an error, which quotes no token, if there is none, if a name is empty, if two are
// equal, if one has fewer than 16 bytes, or if no client could send it: with spaces,
// control or non-ASCII characters. The map can be changed after the call.
//
// Tokens must be random and have at least 128 bits: nothing limits guesses.
func Tokens(byName map[string][]string) (Authenticator, error) {
	// The digests are the keys, so the duration of a lookup reveals nothing about a token.
	names := make(map[[sha256.Size]byte]string)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, token := range byName[name] {
			digest, problem := sha256.Sum256([]byte(token)), ""
			switch {
			case name == "":
				problem = "has no name"
			case !wire.IsToken(token):
				problem = "is empty or contains spaces, control or non-ASCII characters"
			case len(token) < minTokenBytes:
				problem = fmt.Sprintf("has fewer than %d bytes: generate one with openssl rand -hex 16", minTokenBytes)
			case names[digest] != "":
				problem = "is given twice"
			}
			if problem != "" {
				return nil, fmt.Errorf("httpapi: a bearer token of %q %s", name, problem)
			}
			names[digest] = name
		}
	}
	if len(names) == 0 {
		return nil, errors.New("httpapi: no bearer token given")
	}
	return func(r *http.Request) (relayer.Actor, error) {
		token, ok := BearerToken(r)
		name := names[sha256.Sum256([]byte(token))]
		if !ok || name == "" {
			return relayer.Actor{}, ErrUnauthorized
		}
		return relayer.Actor{ID: name}, nil
	}, nil
}

// TrustHost accepts every request whose context has an actor with an ID, for a host whose
// own middleware has authenticated it and has called [relayer.WithActor]. Any other request
// is rejected with 401, so that a forgotten middleware does not open the API.
//
// The middleware runs once per request, so that a change stream continues after a logout. A
// host that ends sessions passes an [Authenticator] that reads the session instead: a stream
// calls it again about every 15 seconds.
func TrustHost() Authenticator {
	return func(r *http.Request) (relayer.Actor, error) {
		actor, _ := relayer.ActorFrom(r.Context())
		if actor.ID == "" {
			return relayer.Actor{}, ErrUnauthorized
		}
		return actor, nil
	}
}

// BearerToken returns the token of the Authorization header, for an [Authenticator]. It
// reports false if the request has no valid one, or more than one Authorization header: a
// proxy in front of the handler may have checked another one.
func BearerToken(r *http.Request) (token string, ok bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	token, ok = bearerToken(values[0])
	return token, ok && wire.IsToken(token)
}

func bearerToken(value string) (token string, isBearer bool) {
	scheme, token, _ := strings.Cut(value, " ")
	return strings.Trim(token, " "), strings.EqualFold(scheme, "Bearer")
}

// challenge returns the value of WWW-Authenticate, which says whether a token was sent.
func challenge(r *http.Request) string {
	for _, value := range r.Header["Authorization"] {
		if token, isBearer := bearerToken(value); isBearer && token != "" {
			return `Bearer error="invalid_token"`
		}
	}
	return "Bearer"
}

// WithClientAddress sets the function that returns the address of a client, for a host behind a
// proxy. The function should read a header that the proxy sets and that no client can set. By
// default the address is that of the connection. It is the Address of the [relayer.Actor], and
// has the share of a request that is not authenticated yet ([WithMaxInFlight]).
func WithClientAddress(address func(*http.Request) string) Option {
	return Option{func(s *settings) error {
		return set(&s.address, address, address != nil, "client address function is nil")
	}}
}

// connectionAddress returns the remote address of the connection without its port.
func connectionAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
